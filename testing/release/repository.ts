/** A small repository with everything that a release checks. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { git } from './git.ts'

export interface Repository {
  readonly root: string
  readonly write: (file: string, text: string) => void
  readonly git: (...args: readonly string[]) => void
  readonly remove: () => void
}

/** What a release of 1.2.3 needs. */
const FILES = {
  'package.json': '{"version":"1.2.3"}',
  'package-lock.json': '{"version":"1.2.3","packages":{"":{"version":"1.2.3"}}}',
  'CHANGELOG.md': '# Changelog\n\n## [1.2.3] - 2026-11-25\n\n- A change.\n\n## [1.2.2] - 2026-10-01\n\n- Another.\n',
  'deploy/helm/chart/Chart.yaml': 'name: chart\nversion: 1.2.3\nappVersion: 1.2.3\n',
  'deploy/kubernetes/pod.yaml': 'image: ghcr.io/threadwarden/threadwarden:1.2.3\n',
}

/** Makes one, committed and tagged as v1.2.3; `changes` replace files, or add some. */
export function makeRepository(changes: Readonly<Record<string, string>> = {}): Repository {
  const root = mkdtempSync(join(tmpdir(), 'threadwarden-test-'))
  const write = (file: string, text: string): void => {
    mkdirSync(dirname(join(root, file)), { recursive: true })
    writeFileSync(join(root, file), text)
  }
  const run = (...args: readonly string[]): void => {
    const author = [
      '-c',
      'user.name=a',
      '-c',
      'user.email=a@example.com',
      '-c',
      'tag.gpgSign=false',
      '-c',
      'commit.gpgSign=false',
    ]
    if (git(root, ...author, ...args) === undefined) throw new Error(`git ${args.join(' ')} failed`)
  }
  for (const [file, text] of Object.entries({ ...FILES, ...changes })) write(file, text)
  run('init', '--quiet')
  run('add', '.')
  run('commit', '--quiet', '--message', 'all')
  run('tag', 'v1.2.3')
  return { root, write, git: run, remove: () => rmSync(root, { recursive: true, force: true }) }
}

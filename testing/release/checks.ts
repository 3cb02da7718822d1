/** What must be true before a release is made, and what is wrong if it is not. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { git } from './git.ts'
import { latestSection, versionsIn } from './versions.ts'

const TAG = /^v(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)$/

/** A release that may be made. */
export interface Release {
  readonly tag: string
  readonly version: string
  readonly commit: string
  /** When the commit was made, in seconds since 1970: the time of every file of the release. */
  readonly epoch: number
  /** What the changelog says. */
  readonly notes: string
}

/** The release of a tag, or all reasons against it. */
export function checkRelease(root: string, tag: string): Release | readonly string[] {
  const [, version] = TAG.exec(tag) ?? []
  if (version === undefined) return [`the tag ${tag} is not vMAJOR.MINOR.PATCH`]
  const commit = git(root, 'rev-parse', '--verify', '--quiet', `refs/tags/${tag}^{commit}`)
  const section = latestSection(readFileSync(join(root, 'CHANGELOG.md'), 'utf8'))
  const reasons = [...treeReasons(root, tag, commit), ...versionReasons(root, version), ...changelogReasons(section)]
  if (reasons.length > 0 || commit === undefined || section === undefined) return reasons
  return { tag, version, commit, epoch: Number(git(root, 'log', '-1', '--format=%ct', commit)), notes: section.text }
}

function treeReasons(root: string, tag: string, commit: string | undefined): readonly string[] {
  const reasons: string[] = []
  if (commit === undefined) reasons.push(`there is no tag ${tag}: git tag --sign ${tag}`)
  else if (git(root, 'rev-parse', 'HEAD') !== commit) reasons.push(`${tag} is another commit: git checkout ${tag}`)
  const changed = git(root, 'status', '--porcelain') ?? ''
  if (changed !== '') {
    const files = changed.split('\n').map((line) => line.trim())
    const shown = files.slice(0, 5).join(', ')
    reasons.push(`the worktree has changes: commit or remove them (${shown}${files.length > 5 ? ', …' : ''})`)
  }
  return reasons
}

function versionReasons(root: string, version: string): readonly string[] {
  const others = versionsIn(root).filter((named) => named.version !== version)
  return others.map((named) => `${named.where} has ${named.version}, the tag has ${version}: change one of them`)
}

function changelogReasons(section: { readonly date: string; readonly text: string } | undefined): readonly string[] {
  if (section === undefined) return ['CHANGELOG.md has no section: write ## [VERSION] - DATE']
  const reasons: string[] = []
  if (!/^\d{4}-\d{2}-\d{2}$/.test(section.date)) {
    reasons.push(
      `the first section of CHANGELOG.md is "${section.date === '' ? 'unreleased' : section.date}": write its date, as YYYY-MM-DD`,
    )
  }
  if (section.text === '') reasons.push('the first section of CHANGELOG.md is empty: write what has changed')
  return reasons
}

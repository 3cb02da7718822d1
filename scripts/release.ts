/** Makes all files of a release from a tag. */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { runCommand, UsageError } from '../testing/command.ts'
import { packChart } from '../testing/release/chart.ts'
import { checkRelease, type Release } from '../testing/release/checks.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

const PARTS = ['npm', 'chart', 'sbom', 'image', 'notes'] as const

type Part = (typeof PARTS)[number]

const USAGE = `Makes the files of a release from a tag. It publishes nothing.

  npm run release -- TAG [--out FOLDER] [--only PART]… [--dry-run] [-- IMAGE-OPTION…]

  TAG           such as v0.1.0: a tag of the commit that is checked out
  --out FOLDER  where the files go (default: release/TAG); it must be empty or missing
  --only PART   makes this part only; may be repeated. Parts: ${PARTS.join(', ')}
  --dry-run     checks whether the release may be made, and names its files
  --help        shows this text

  IMAGE-OPTION is passed to scripts/image/build.sh, for example --assembled or --platforms amd64.

The release is refused if the worktree has changes, if the tag is missing or is another commit, if a file names another
version, or if the first section of CHANGELOG.md has no date. Everything is built from the files of the tag, with packages
from the lockfiles. The same tag gives the same checksums.

The image needs root, buildah and podman; see scripts/image/build.sh --help.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage.
`

const SUMS = 'SHA256SUMS'

function fileOf(part: Part, version: string): string {
  const suffixes = { npm: '.npm.tgz', chart: '.chart.tgz', sbom: '.sbom.cdx.json', image: '.image.oci.tar', notes: '.notes.md' }
  return `threadwarden-${version}${suffixes[part]}`
}

interface Options {
  readonly tag: string
  readonly out: string
  readonly parts: readonly Part[]
  readonly isDryRun: boolean
  readonly imageOptions: readonly string[]
}

/** The options; null for --help. */
function readOptions(): Options | null {
  const args = process.argv.slice(2)
  const end = args.includes('--') ? args.indexOf('--') : args.length
  const { values, positionals } = parseArgs({
    args: args.slice(0, end),
    allowPositionals: true,
    options: {
      out: { type: 'string' },
      only: { type: 'string', multiple: true, default: [] },
      'dry-run': { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) return null
  const [tag, ...others] = positionals
  if (tag === undefined || others.length > 0) throw new UsageError('release: name one tag')
  const unknown = values.only.find((name) => !PARTS.some((part) => part === name))
  if (unknown !== undefined) throw new UsageError(`release: there is no part ${unknown}`)
  return {
    tag,
    out: resolve(values.out ?? join(ROOT, 'release', tag)),
    parts: PARTS.filter((part) => values.only.length === 0 || values.only.includes(part)),
    isDryRun: values['dry-run'],
    imageOptions: args.slice(end + 1),
  }
}

/** Runs a program to its end; what it prints is shown. */
function run(folder: string, program: string, args: readonly string[], environment: NodeJS.ProcessEnv = {}): void {
  // An `npm run` around this one hands its own folder and options on in the environment.
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('npm_'))
  const env = { ...Object.fromEntries(inherited), ...environment }
  const { status, error } = spawnSync(program, args, { cwd: folder, env, stdio: ['ignore', 'inherit', 'inherit'] })
  if (error !== undefined) throw error
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} failed`)
}

const INSTALL = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']

/**
 * The files of the tag, with the packages of the build. The compiler is in the folder above, as in the Dockerfile.
 * @returns the folder of the files
 */
function checkOut(release: Release, work: string, parts: readonly Part[]): string {
  const source = join(work, 'threadwarden')
  mkdirSync(source)
  run(ROOT, 'sh', ['-ec', 'git archive --format=tar "$1" | tar -x -C "$2"', 'sh', release.commit, source])
  if (!parts.includes('npm') && !parts.includes('sbom')) return source
  for (const name of ['package.json', 'package-lock.json']) {
    writeFileSync(join(work, name), readFileSync(join(source, 'scripts/image', name)))
  }
  run(work, 'npm', [...INSTALL, '--omit=optional'])
  if (parts.includes('npm')) run(source, 'npm', [...INSTALL, '--omit=dev', '--workspaces=false'])
  return source
}

/** Makes one part of a release as a file. */
type Maker = (release: Release, source: string, file: string, options: Options) => void | Promise<void>

const MAKERS: Readonly<Record<Part, Maker>> = {
  npm: ({ epoch }, source, file) => {
    run(source, 'npm', ['run', '--silent', 'build'])
    const folder = mkdtempSync(join(source, '../packed-'))
    run(source, 'npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', folder], {
      SOURCE_DATE_EPOCH: String(epoch),
    })
    const [packed] = readdirSync(folder)
    renameSync(join(folder, packed!), file)
  },
  chart: ({ epoch }, source, file) => packChart(join(source, 'deploy/helm/threadwarden'), file, epoch),
  sbom: ({ epoch }, source, file) => {
    const program = join(source, 'scripts/image/sbom.ts')
    run(source, process.execPath, [program, '--out', file], { SOURCE_DATE_EPOCH: String(epoch) })
    run(source, process.execPath, [program, '--check', file])
  },
  image: ({ version, commit, epoch }, source, file, { imageOptions }) => {
    const named = ['--version', version, '--revision', commit, '--epoch', String(epoch), '--out', file]
    run(source, join(source, 'scripts/image/build.sh'), [...named, ...imageOptions])
  },
  notes: ({ notes }, _source, file) => writeFileSync(file, `${notes}\n`),
}

function writeSums(folder: string): string {
  const files = readdirSync(folder)
    .filter((name) => name !== SUMS)
    .toSorted()
  const lines = files.map(
    (name) =>
      `${createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex')}  ${name}\n`,
  )
  writeFileSync(join(folder, SUMS), lines.join(''))
  return lines.join('')
}

function isTaken(folder: string): boolean {
  return existsSync(folder) && readdirSync(folder).length > 0
}

async function main(): Promise<number> {
  const options = readOptions()
  if (options === null) {
    process.stdout.write(USAGE)
    return 0
  }
  const { tag, out, parts, isDryRun } = options
  const release = checkRelease(ROOT, tag)
  const reasons = 'version' in release ? [] : release
  const all = isTaken(out) ? [...reasons, `${out} is not empty: remove it, or name another folder with --out`] : reasons
  if (all.length > 0 || !('version' in release)) {
    process.stderr.write(`release: ${tag} is refused\n${all.map((reason) => `  - ${reason}\n`).join('')}`)
    return 1
  }
  const names = parts.map((part) => fileOf(part, release.version))
  if (isDryRun) {
    process.stdout.write(`${tag} may be released. Files:\n${[...names, SUMS].map((name) => `  ${join(out, name)}\n`).join('')}`)
    return 0
  }
  const work = mkdtempSync(join(tmpdir(), 'threadwarden-release-'))
  try {
    const source = checkOut(release, work, parts)
    mkdirSync(out, { recursive: true })
    for (const part of parts) {
      const file = join(out, fileOf(part, release.version))
      process.stdout.write(`${part} …\n`)
      await MAKERS[part](release, source, file, options)
    }
    process.stdout.write(`${out}\n${writeSums(out)}`)
    return 0
  } catch (error) {
    rmSync(out, { recursive: true, force: true })
    process.stderr.write(`release: failed: ${(error as Error).message}\n`)
    return 1
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

await runCommand(main, USAGE)

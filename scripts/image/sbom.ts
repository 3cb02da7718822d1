/**
 * Writes the SBOM of the gateway's npm packages, in CycloneDX. It reads lockfiles only, so that the same commit gives the same file.
 * `npm sbom` is not used: with workspaces it leaves packages out, or fails.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const USAGE = `Writes an SBOM of the packages that the gateway runs with, in CycloneDX 1.6 (JSON).

  node scripts/image/sbom.ts [--out FILE] [--check FILE]

  --out FILE    writes it there instead of to stdout
  --check FILE  checks a file against the schema of CycloneDX instead of writing one
  --help        shows this text

SOURCE_DATE_EPOCH is the time in it, in seconds; without it there is none.
The packages of scripts/image must be installed: node scripts/setup.mjs --only-image

Exit codes: 0 done, 1 failed or invalid, 2 wrong usage.
`

interface Component {
  readonly properties?: readonly { readonly name: string; readonly value: string }[]
  readonly components?: readonly Component[]
  hashes?: readonly { readonly alg: string; readonly content: string }[]
}

interface Sbom {
  serialNumber?: string
  readonly metadata: { timestamp?: string; readonly tools: { components: readonly { readonly name: string }[] } }
  readonly components: readonly Component[]
}

/** Where a package of scripts/image is; in the build of the image they are in a folder above. */
function folderOf(name: string): string {
  const require = createRequire(import.meta.url)
  const folders = require.resolve.paths(name) ?? []
  for (const folder of folders) {
    const manifest = join(folder, name, 'package.json')
    try {
      readFileSync(manifest)
      return dirname(manifest)
    } catch {
      // The next folder may have it.
    }
  }
  throw new Error(`${name} is not installed: run node scripts/setup.mjs --only-image`)
}

function generate(): Sbom {
  const program = join(folderOf('@cyclonedx/cyclonedx-npm'), 'bin/cyclonedx-npm-cli.js')
  const options = ['--package-lock-only', '--omit', 'dev', '--no-workspaces', '--output-reproducible', '--no-validate']
  const text = execFileSync(process.execPath, [program, ...options, '--mc-type', 'application', '--spec-version', '1.6'], {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    // npm reads the options of an `npm run` around it from the environment.
    env: Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('npm_'))),
  })
  return JSON.parse(text) as Sbom
}

/** Adds the checksums that npm verifies; the generator does not take them from the lockfile. */
function addHashes(components: readonly Component[], packages: Readonly<Record<string, { readonly integrity?: string }>>): void {
  for (const component of components) {
    const path = component.properties?.find(({ name }) => name === 'cdx:npm:package:path')?.value ?? ''
    const integrity = packages[path]?.integrity
    if (integrity?.startsWith('sha512-') !== true) throw new Error(`package-lock.json has no SHA-512 of ${path}`)
    component.hashes = [{ alg: 'SHA-512', content: Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex') }]
    addHashes(component.components ?? [], packages)
  }
}

/** A UUID that depends on the content alone (RFC 9562, version 8). */
function serialNumber(text: string): string {
  const hash = createHash('sha256').update(text).digest()
  hash[6] = (hash[6]! & 0x0f) | 0x80
  hash[8] = (hash[8]! & 0x3f) | 0x80
  const hex = hash.toString('hex')
  return `urn:uuid:${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`
}

/** The SBOM as text. */
function makeSbom(epoch: string | undefined): string {
  const sbom = generate()
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, { readonly integrity?: string }>>
  }
  addHashes(sbom.components, lock.packages)
  // The version of npm has no influence, and differs between machines.
  sbom.metadata.tools.components = sbom.metadata.tools.components.filter(({ name }) => name !== 'npm')
  if (epoch !== undefined) sbom.metadata.timestamp = new Date(Number(epoch) * 1000).toISOString()
  sbom.serialNumber = serialNumber(JSON.stringify(sbom))
  return `${JSON.stringify(sbom, null, 2)}\n`
}

/** What the schema of CycloneDX objects to; null if nothing. */
async function check(file: string): Promise<unknown> {
  const { Validation, Spec } = (await import(join(folderOf('@cyclonedx/cyclonedx-library'), 'dist.node/index.node.js'))) as {
    readonly Validation: {
      readonly JsonStrictValidator: new (version: string) => { validate(text: string): Promise<unknown> }
    }
    readonly Spec: { readonly Version: { readonly v1dot6: string } }
  }
  return new Validation.JsonStrictValidator(Spec.Version.v1dot6).validate(readFileSync(file, 'utf8'))
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: { out: { type: 'string' }, check: { type: 'string' }, help: { type: 'boolean', default: false } },
  })
  if (values.help) {
    process.stdout.write(USAGE)
    return 0
  }
  if (values.check !== undefined) {
    const errors = await check(values.check)
    if (errors === null) return 0
    process.stderr.write(`${values.check} is not valid CycloneDX 1.6: ${JSON.stringify(errors)}\n`)
    return 1
  }
  const text = makeSbom(process.env['SOURCE_DATE_EPOCH'])
  if (values.out === undefined) process.stdout.write(text)
  else writeFileSync(values.out, text)
  return 0
}

try {
  process.exitCode = await main()
} catch (error) {
  const isUsage = (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS') === true
  process.stderr.write(`sbom: ${(error as Error).message}\n${isUsage ? `\n${USAGE}` : ''}`)
  process.exitCode = isUsage ? 2 : 1
}

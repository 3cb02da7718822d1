/** Compares an installed runtime with what the gateway knows: testing/contract. */
import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { NEWEST_TESTED, TESTED_RUNTIMES, versionNumbers } from '../src/core/route/runtime-version.ts'
import { runCommand, UsageError } from '../testing/command.ts'
import type { RuntimeContract } from '../testing/contract/facts.ts'
import { askContract, folderOf, install, newestRelease, NoContract } from '../testing/contract/installed.ts'
import { missingIn, nameOf, unknownIn } from '../testing/contract/known.ts'
import { renderPage } from '../testing/contract/page.ts'
import { readRecorded, writeRecorded } from '../testing/contract/recorded.ts'

const USAGE = `Asks a runtime what it takes and gives, and prints what the gateway does not know.

  npm run contract -- --runtime VERSION [--json]   a version of @copilotkit/runtime, such as ${NEWEST_TESTED}
  npm run contract -- --newest [--or-skip]         the newest version in the npm registry
  npm run contract -- --folder FOLDER [--json]     an installed package
  npm run contract -- --record                     asks all tested versions, and writes what they say, and
                                                   docs/reference/runtime-versions.md
  npm run contract -- --page [--check]             writes that page from what is recorded

  --json     prints all that the runtime takes and gives
  --or-skip  if the registry does not answer: says so, exit code 0
  --check    writes nothing: exit code 1 if the page is another

A version that is not installed is installed below node_modules/.cache, about 270 MB. Its own code runs, without network.
Exit code: 0 the gateway knows all of it, 1 it does not, or the runtime could not be asked, 2 wrong usage.
docs/how-to/operate/new-runtime-version.md says what to do with the findings.
`

const PAGE = new URL('../docs/reference/runtime-versions.md', import.meta.url)

async function installedFolder(version: string): Promise<string> {
  const folder = folderOf(version)
  if (folder !== null) return folder
  process.stderr.write(`installing @copilotkit/runtime ${version} …\n`)
  return install(version)
}

async function compare(folder: string, format: 'text' | 'json'): Promise<number> {
  const contract = await askContract(folder)
  const [missing, unknown] = [missingIn(contract), unknownIn(contract)]
  if (format === 'json') process.stdout.write(`${JSON.stringify({ ...contract, missing, unknown }, null, 2)}\n`)
  else process.stdout.write(report(contract, missing, unknown))
  return missing.length + unknown.length === 0 ? 0 : 1
}

function report(contract: RuntimeContract, missing: readonly string[], unknown: readonly string[]): string {
  const { version, agUi, routes, envelopeMethods, infoFields, headers } = contract
  const keys = new Set(routes.flatMap((route) => route.bodyKeys.map((key) => `${nameOf(route)} ${key}`)))
  const lines = [
    `${contract.package} ${version}, AG-UI ${agUi}: ${routes.length} routes, ${envelopeMethods.length} envelope methods, ${keys.size} body keys, ${infoFields.length} fields of /info, headers of the ${headers.winner} win`,
    ...missing.map((what) => `not found: ${what}. Every runtime has it, so this version has to be read in another way`),
    ...unknown.map((what) => `unknown: ${what}`),
    missing.length + unknown.length === 0 ? 'the gateway knows all of it' : '→ docs/how-to/operate/new-runtime-version.md',
  ]
  return `${lines.join('\n')}\n`
}

async function compareNewest(format: 'text' | 'json', silence: 'fails' | 'is-skipped'): Promise<number> {
  const version = await newestRelease()
  if (version === null) {
    process.stderr.write(`the npm registry does not answer, so that no runtime newer than ${NEWEST_TESTED} was compared\n`)
    return silence === 'fails' ? 1 : 0
  }
  return compare(await installedFolder(version), format)
}

async function record(): Promise<number> {
  const contracts: RuntimeContract[] = []
  for (const version of TESTED_RUNTIMES) {
    process.stderr.write(`${version} …\n`)
    contracts.push(await askContract(await installedFolder(version)))
  }
  writeRecorded(contracts)
  writeFileSync(PAGE, renderPage(contracts))
  return 0
}

function page(isCheck: boolean): number {
  const text = renderPage(readRecorded())
  if (!isCheck) writeFileSync(PAGE, text)
  else if (readFileSync(PAGE, 'utf8') !== text) {
    process.stderr.write('docs/reference/runtime-versions.md is not what is recorded: run npm run contract -- --page\n')
    return 1
  }
  return 0
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      runtime: { type: 'string' },
      folder: { type: 'string' },
      newest: { type: 'boolean', default: false },
      'or-skip': { type: 'boolean', default: false },
      record: { type: 'boolean', default: false },
      page: { type: 'boolean', default: false },
      check: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    process.stdout.write(USAGE)
    return 0
  }
  const { runtime, folder } = values
  const asked = [runtime !== undefined, folder !== undefined, values.newest, values.record, values.page].filter(Boolean).length
  if (asked !== 1) throw new UsageError('name one of --runtime, --newest, --folder, --record and --page')
  if (runtime !== undefined && versionNumbers(runtime) === null)
    throw new UsageError(`--runtime is a version such as ${NEWEST_TESTED}`)
  const format = values.json ? 'json' : 'text'
  try {
    if (values.record) return await record()
    if (values.page) return page(values.check)
    if (values.newest) return await compareNewest(format, values['or-skip'] ? 'is-skipped' : 'fails')
    return await compare(folder ?? (await installedFolder(runtime ?? '')), format)
  } catch (error) {
    if (!(error instanceof NoContract)) throw error
    process.stderr.write(`${error.message}\n`)
    return 1
  }
}

await runCommand(main, USAGE)

/**
 * One process of the fuzzer: `node child.ts TARGET -- OPTIONS`, the options being those of libFuzzer. Jazzer.js starts it again by
 * the same words where it merges corpora. It writes what it has taken of the processor, and gives way to everything else.
 */
import { createRequire, register } from 'node:module'
import { constants, setPriority } from 'node:os'
import { fileURLToPath } from 'node:url'
import { TARGETS, type TargetName } from '../../testing/fuzz/targets.ts'

/** What is used here of the package, which only its own folder has. */
interface Jazzer {
  readonly OptionsManager: new (source: number) => { merge(options: object, source: number): object }
  readonly OptionSource: { readonly DefaultCLIOptions: number; readonly CommandLineArguments: number }
  readonly startFuzzing: (options: object) => Promise<{ readonly returnCode: number }>
}

const SOURCES = fileURLToPath(new URL('../../src/', import.meta.url))

setPriority(constants.priority.PRIORITY_LOW)
register('./strip-types.ts', import.meta.url)
const require = createRequire(new URL('fuzzer/package.json', import.meta.url))
const { OptionsManager, OptionSource, startFuzzing } = require('@jazzer.js/core') as Jazzer

const [name, ...words] = process.argv.slice(2)
const options = new OptionsManager(OptionSource.DefaultCLIOptions).merge(
  {
    fuzzTarget: TARGETS[name as TargetName].href,
    fuzzEntryPoint: 'examine',
    includes: [SOURCES],
    excludes: [],
    // They look for what this code never does: no shell, no request to an address of the caller's.
    disableBugDetectors: ['.*'],
    timeout: 20_000,
    fuzzerOptions: words.slice(words.indexOf('--') + 1),
  },
  OptionSource.CommandLineArguments,
)
const telling = setInterval(tellTime, 5000)
const { returnCode } = await startFuzzing(options)
clearInterval(telling)
tellTime()
process.exit(returnCode)

function tellTime(): void {
  const { user, system } = process.cpuUsage()
  process.stderr.write(`CPU ${(user + system) / 1e6} s\n`)
}

/** `threadwarden validate`: checks whether the gateway would serve a configuration. */
import { storeOf } from '../config/store-place.ts'
import { faultLine, type Fault } from '../document/fault.ts'
import { prepare, type Prepared } from '../snapshot/load.ts'
import { CONFIG, defineCommand, EXIT, flag, jsonFlag } from './command.ts'
import { complain, print, printData } from './terminal.ts'
import { configFile } from './input-files.ts'
import { inspectFile } from './with-store.ts'

export const command = defineCommand({
  about: `Checks a configuration, its policies, key files and store file. It reports every error for which serve refuses to start, with the
place and the fix. In the path of a key, list items are counted from 0: rules.0 is the first rule.

It starts nothing, changes nothing and makes no connections. threadwarden doctor also asks PostgreSQL, issuers and upstreams.`,
  options: { config: CONFIG, strict: flag('counts warnings as errors'), json: jsonFlag('{"valid", "faults", "warnings"}') },
  exitCodes: { 0: 'valid, or valid with warnings', 1: 'invalid, or warnings with --strict' },
  examples: ['threadwarden validate', 'threadwarden validate --config staging.yaml --strict --json'],

  run(values, terminal) {
    const file = configFile(terminal, values)
    const prepared = prepare(file, terminal.env)
    const faults = prepared.ok ? storeFaults(file, prepared.value) : prepared.faults
    const warnings = prepared.ok ? prepared.value.warnings : []
    const valid = faults.length === 0 && (!values.strict || warnings.length === 0)
    if (values.json) printData(terminal, { valid, faults, warnings })
    else {
      for (const fault of faults) complain(terminal, `error: ${faultLine(fault)}`)
      for (const warning of warnings) complain(terminal, `warning: ${faultLine(warning)}`)
      if (valid) print(terminal, `${file} is valid`)
    }
    return valid ? EXIT.fine : EXIT.failure
  },
})

function storeFaults(file: string, { config }: Prepared): readonly Fault[] {
  const store = storeOf(config.ownership)
  // The doctor checks a database server: this command makes no connections.
  if (store.kind === 'postgres') return []
  const seen = inspectFile(store.file)
  if (seen.outcome !== 'unusable') return []
  return [{ file, path: 'ownership.store', message: seen.message, hint: seen.hint }]
}

/** `threadwarden validate`: checks whether the gateway would serve a configuration. */
import { storeOf } from '../config/store-place.ts'
import { faultLine, type Fault } from '../document/fault.ts'
import { prepare, type Prepared } from '../snapshot/load.ts'
import { lookAtStore } from '../store/look.ts'
import { complain, EXIT, print, printData, readOptions, UsageError, type Command } from './command.ts'

export const validate: Command = {
  summary: 'checks a configuration and its policy',
  help: `threadwarden validate --config FILE [--strict] [--json]

Checks a configuration, its policies, key files and store file, and reports every fault with its place and what to do:
whatever serve would refuse here. Nothing is started, fetched, made or changed. No server is asked: not PostgreSQL, no issuer
and no upstream; threadwarden doctor asks them.

  --config FILE  the configuration (YAML or JSON)
  --strict       warnings count as faults
  --json         prints {"valid", "faults", "warnings"} on stdout

Exit codes: 0 valid (warnings alone too), 1 invalid, 2 wrong usage.`,

  run(args) {
    const options = readOptions(args, { config: { type: 'string' }, strict: { type: 'boolean' }, json: { type: 'boolean' } })
    if (options.config === undefined) throw new UsageError('--config FILE is missing')
    const prepared = prepare(options.config, process.env)
    const faults = prepared.ok ? storeFaults(options.config, prepared.value) : prepared.faults
    const warnings = prepared.ok ? prepared.value.warnings : []
    const valid = faults.length === 0 && (options.strict !== true || warnings.length === 0)
    if (options.json === true) printData({ valid, faults, warnings })
    else {
      for (const fault of faults) complain(`error: ${faultLine(fault)}`)
      for (const warning of warnings) complain(`warning: ${faultLine(warning)}`)
      if (valid) print(`${options.config} is valid`)
    }
    return Promise.resolve(valid ? EXIT.fine : EXIT.failure)
  },
}

/** As long as a start of the gateway waits for another process's lock, in milliseconds. */
const PATIENCE = 5000

function storeFaults(file: string, { config }: Prepared): readonly Fault[] {
  const store = storeOf(config.ownership)
  // The doctor checks a database server: this command makes no connections.
  if (store.kind === 'postgres') return []
  const seen = lookAtStore(store.file, PATIENCE)
  if (seen.outcome !== 'unusable') return []
  return [{ file, path: 'ownership.store', message: seen.message, hint: seen.hint }]
}

/** `threadwarden store migrate`: migrates the store to this program's schema. */
import { complain, EXIT, print, printData, readOptions, type Command } from '../command.ts'
import { loaded } from '../input-files.ts'
import { STORE_OPTIONS, withStore } from '../with-store.ts'
import { lookAt, type Seen } from '../inspect-store.ts'

const OPTIONS = { ...STORE_OPTIONS, check: { type: 'boolean' } } as const

export const migrate: Command = {
  summary: 'brings the store to the schema of this program',
  help: `threadwarden store migrate --config FILE [--check] [--json]

Brings the store to the schema of this program, making it where it is not there. A gateway does the same when it starts; with
this command it is done before, for example by a user who may change tables where the gateway's may not. Gateways of the
version before go on meanwhile only if the release notes say so.

  --config FILE  the configuration (YAML or JSON)
  --check        only looks, and changes nothing
  --json         prints {"from", "to", "migrated"} on stdout: schemas by their number, null for a store that is not there

Exit codes: 0 the store is of this program's schema, 1 it is not (--check), an invalid configuration or a failing store,
2 wrong usage.`,

  async run(args) {
    const options = readOptions(args, OPTIONS)
    const prepared = loaded(options.config, options.json === true)
    if (prepared === null) return EXIT.failure
    const seen = await lookAt(prepared.config.ownership)
    if (seen.outcome === 'unusable') {
      complain(`error: ${seen.message}; ${seen.hint}`)
      return EXIT.failure
    }
    const from = seen.outcome === 'missing' ? null : seen.schema
    const say = (migrated: boolean): number => {
      if (options.json === true) printData({ from, to: seen.latest, migrated }, 0)
      else print(words(from, seen, migrated))
      return migrated || from === seen.latest ? EXIT.fine : EXIT.failure
    }
    if (options.check === true) return say(false)
    // Opening the store migrates it.
    return withStore(prepared, { make: true }, () => Promise.resolve(say(from !== seen.latest)))
  },
}

function words(from: number | null, { place, latest }: Seen, migrated: boolean): string {
  const to = `schema ${latest}`
  if (from === latest) return `${place} has ${to}: there is nothing to do`
  if (from === null) return migrated ? `${place} was made, with ${to}` : `${place} is not there; it would be made, with ${to}`
  return migrated
    ? `${place} was brought from schema ${from} to ${to}`
    : `${place} has schema ${from}, and this program has ${latest}`
}

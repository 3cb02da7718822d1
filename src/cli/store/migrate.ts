/** `threadwarden store migrate`: migrates the store to this program's schema. */
import { CommandFailed, CONFIG, defineCommand, EXIT, flag, jsonFlag } from '../command.ts'
import { print, printData } from '../terminal.ts'
import { loadConfig } from '../input-files.ts'
import { inspectStore, type Inspected, withStore } from '../with-store.ts'

export const command = defineCommand({
  about: `Migrates the store to the schema of this program, and creates a missing store. A starting gateway does the same. Use this command
to migrate earlier, for example as a database user with more rights than the gateway. Gateways of the previous version work during
a migration only if the release notes say so.`,
  options: {
    config: CONFIG,
    check: flag('only checks, and changes nothing'),
    json: jsonFlag('{"from", "to", "migrated"}', ': numbers of schemas, null for a missing store'),
  },
  exitCodes: {
    0: 'the store has the schema of this program',
    1: 'another schema (--check), an invalid configuration or a failing store',
  },
  examples: ['threadwarden store migrate', 'threadwarden store migrate --check'],

  async run(values, terminal) {
    const prepared = loadConfig(terminal, values)
    const seen = await inspectStore(prepared.config.ownership)
    if (seen.outcome === 'unusable') throw new CommandFailed(`error: ${seen.message}; ${seen.hint}`)
    const from = seen.outcome === 'missing' ? null : seen.schema
    const to = seen.latest
    const outcome = from === to ? 'same' : values.check ? 'behind' : 'migrated'
    const report = (): Promise<number> => {
      if (values.json) printData(terminal, { from, to, migrated: outcome === 'migrated' }, 0)
      else print(terminal, REPORTS[outcome](seen, from))
      return Promise.resolve(outcome === 'behind' ? EXIT.failure : EXIT.fine)
    }
    // Opening the store migrates it.
    return values.check ? report() : withStore(terminal, prepared, { make: true }, report)
  },
})

type Report = (store: Inspected, from: number | null) => string

const REPORTS: Readonly<Record<'same' | 'behind' | 'migrated', Report>> = {
  same: ({ place, latest }) => `${place} has schema ${latest}, the one of this program`,
  behind: ({ place, latest }, from) =>
    from === null
      ? `${place} does not exist: store migrate creates it with schema ${latest}`
      : `${place} has schema ${from}, and this program needs schema ${latest}`,
  migrated: ({ place, latest }, from) =>
    from === null
      ? `${place} was created with schema ${latest}`
      : `${place} was migrated from schema ${from} to schema ${latest}`,
}

/** `threadwarden user export`: prints all data that the store holds about a user. */
import { writeFileSync } from 'node:fs'
import { shownRow, timeText } from '../../tools/import-export/export.ts'
import { shownGrant } from '../../operator/grant-form.ts'
import { shown } from '../../operator/revocation-form.ts'
import type { UserData } from '../../store/port/administration.ts'
import type { StoredGrant } from '../../store/port/grants.ts'
import type { ThreadKey } from '../../store/port/thread.ts'
import { CommandFailed, CONFIG, defineCommand, EXIT, value } from '../command.ts'
import { printData } from '../terminal.ts'
import { userNamed } from '../argument-values.ts'
import { threadData } from '../format-thread.ts'
import { onStore } from '../with-store.ts'

export const command = defineCommand({
  about: `Exports all data of a user in the store as a JSON object: {"user", "threads", "granted", "received", "observed", "revocations"}, of
all upstreams. An entry has "scope", the key of its upstream, unless that is upstream. Grants to the groups of the user are not
exported.`,
  positionals: { USER: 'issuer:subject, also of an issuer that is no longer configured' },
  options: { config: CONFIG, output: value('FILE', 'writes to a new file instead of stdout') },
  exitCodes: { 0: 'done, also without data', 1: 'a file that cannot be written, an invalid configuration or a failing store' },
  examples: ['threadwarden user export corp:alice --output alice.json'],

  async run(values, terminal, positionals) {
    const user = userNamed(positionals)
    return onStore(terminal, values, async ({ store }) => {
      const data = asData(user, await store.userData(user))
      if (values.output === undefined) {
        printData(terminal, data)
        return EXIT.fine
      }
      try {
        // Personal data: only the file's owner may read it.
        writeFileSync(values.output, `${JSON.stringify(data, null, 2)}\n`, { flag: 'wx', mode: 0o600 })
      } catch (error) {
        const isThere = error instanceof Error && 'code' in error && error.code === 'EEXIST'
        throw new CommandFailed(
          `error: ${values.output} ${isThere ? 'already exists: name another file, or remove it' : 'cannot be written: check the folder and its permissions'}`,
        )
      }
      return EXIT.fine
    })
  },
})

function asData(user: string, { threads, granted, received, observed, revocations }: UserData): object {
  const grantOn = (grant: ThreadKey & StoredGrant): object => ({ ...threadData(grant), ...shownGrant(grant) })
  return {
    user,
    threads: threads.map(shownRow),
    granted: granted.map(grantOn),
    received: received.map(grantOn),
    observed: observed.map(({ agentId, firstUsedAt, lastUsedAt, ...key }) => ({
      ...threadData(key),
      agent: agentId === '' ? null : agentId,
      firstUsed: timeText(firstUsedAt),
      lastUsed: timeText(lastUsedAt),
    })),
    revocations: revocations.map(shown),
  }
}

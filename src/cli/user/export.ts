/** `threadwarden user export`: prints all data that the store holds about a user. */
import { writeFileSync } from 'node:fs'
import { shownRow, timeText } from '../../tools/import-export/export.ts'
import { shown } from '../../operator/revocation-form.ts'
import type { StoredGrant, ThreadKey, UserData } from '../../store/port.ts'
import { complain, EXIT, printData, readArguments, UsageError, type Command } from '../command.ts'
import { shownGrant } from '../format-grant.ts'
import { userOf } from '../argument-values.ts'
import { onStore, STORE_OPTIONS } from '../with-store.ts'
import { threadData } from '../scope-option.ts'

const OPTIONS = { config: STORE_OPTIONS.config, output: { type: 'string' } } as const

export const exportUser: Command = {
  summary: 'writes all that is held of a user as JSON',
  help: `threadwarden user export --config FILE USER [--output FILE]

Writes all that the store holds of a user as a JSON object: {"user", "threads", "granted", "received", "observed",
"revocations"}. What was granted to the user's groups is not theirs, and not in it. It is of all upstreams: what
is not of upstream has the key of its own as "scope".

  --config FILE  the configuration (YAML or JSON)
  USER           issuer:subject, of an issuer that may be gone
  --output FILE  where to; by default stdout. A file that is there is not written over

Exit codes: 0 done, also where nothing is held, 1 an invalid configuration, a failing store or a file that cannot be written,
2 wrong usage.`,

  async run(args) {
    const { values, positionals } = readArguments(args, OPTIONS)
    const user = userNamed(positionals)
    return onStore(values, async ({ store }) => {
      const data = asData(user, await store.userData(user))
      if (values.output === undefined) {
        printData(data)
        return EXIT.fine
      }
      try {
        // Personal data: only the file's owner may read it.
        writeFileSync(values.output, `${JSON.stringify(data, null, 2)}\n`, { flag: 'wx', mode: 0o600 })
      } catch (error) {
        const isThere = error instanceof Error && 'code' in error && error.code === 'EEXIST'
        complain(`error: ${values.output} ${isThere ? 'is there already: name another file, or remove it' : 'cannot be written'}`)
        return EXIT.failure
      }
      return EXIT.fine
    })
  },
}

/** @throws UsageError for no argument, several, or an invalid user id */
export function userNamed(positionals: readonly string[]): string {
  const [user, ...more] = positionals
  if (user === undefined || more.length > 0) throw new UsageError('name one user: issuer:subject')
  return userOf('USER', user)
}

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

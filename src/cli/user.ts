/** `threadwarden user`: commands on the data of a person: give it to them, or erase it. */
import type { CommandGroup } from './command.ts'
import { erase } from './user/erase.ts'
import { exportUser } from './user/export.ts'

export const user: CommandGroup = {
  summary: 'shows and forgets what is held of a user',
  about: `They work on the store that the configuration names, also while gateways run on it. What the upstream holds of a user, and
the log, the audit and backups, are not in it.`,
  commands: { export: exportUser, erase },
}

/** `threadwarden threads`: commands on the ownership table. */
import type { CommandGroup } from './command.ts'
import { assign } from './threads/assign.ts'
import { exportThreads } from './threads/export.ts'
import { importThreads } from './threads/import.ts'
import { list } from './threads/list.ts'
import { owner } from './threads/owner.ts'
import { prune } from './threads/prune.ts'
import { revoke } from './threads/revoke.ts'
import { stats } from './threads/stats.ts'
import { transfer } from './threads/transfer.ts'

export const threads: CommandGroup = {
  summary: 'shows and changes whose threads are',
  about: `They work on the store that the configuration names, also while gateways run on it; what they change is in force there
within a second. Users are written issuer:subject, as in the log.`,
  commands: { list, owner, stats, assign, transfer, revoke, prune, import: importThreads, export: exportThreads },
}

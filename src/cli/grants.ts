/** `threadwarden grants`: commands on who may read and write threads of other users. */
import type { CommandGroup } from './command.ts'
import { add } from './grants/add.ts'
import { list } from './grants/list.ts'
import { remove } from './grants/remove.ts'

export const grants: CommandGroup = {
  summary: 'shows and changes what was granted on threads',
  about: `They work on the store that the configuration names, also while gateways run on it; what they change is in force there
within a second. Users and groups are written issuer:name: a group is what the groups claim of that issuer's tokens holds.`,
  commands: { list, add, remove },
}

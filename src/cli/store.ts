/** `threadwarden store`: commands on the store as a whole. */
import type { CommandGroup } from './command.ts'
import { backup } from './store/backup.ts'
import { migrate } from './store/migrate.ts'

export const store: CommandGroup = {
  summary: 'migrates and backs up the store',
  about: 'They work on the store that the configuration names, also while gateways run on it.',
  commands: { migrate, backup },
}

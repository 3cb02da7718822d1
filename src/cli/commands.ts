/** The commands of the program. */
import type { CommandGroup, NamedCommand } from './command.ts'

const ON_STORE = 'These commands work on the store that the configuration names, also while gateways run on it.'
const APPLIED = 'Gateways apply a change within a second.'

export const PROGRAM: CommandGroup = {
  summary: 'every conversation thread of an agent chat runtime belongs to somebody',
  about: 'threadwarden --help prints this text, threadwarden --version the version.',
  commands: {
    serve: command('runs the gateway', () => import('./serve.ts')),
    validate: command('checks a configuration and its policy', () => import('./validate.ts')),
    routes: command('lists the routes, and who may use them', () => import('./routes.ts')),
    explain: command('shows how one request would be decided, and why', () => import('./explain.ts')),
    diff: command('compares two policies: which decisions change', () => import('./diff.ts')),
    test: command('tests a policy against test files', () => import('./test.ts')),
    doctor: command('checks the surroundings of a gateway', () => import('./doctor.ts')),
    revoke: command('refuses tokens before they expire', () => import('./revoke.ts')),
    completion: command('prints a completion script for a shell', async () => {
      return { command: (await import('./completion.ts')).completionFor(PROGRAM) }
    }),
    threads: {
      summary: 'shows and changes the owners of threads',
      about: `${ON_STORE}\n${APPLIED} Users are written issuer:subject, as in the log.`,
      commands: {
        list: command('shows threads with their owners', () => import('./threads/list.ts')),
        owner: command('shows the owner of a thread, its grants and its observed users', () => import('./threads/owner.ts')),
        stats: command('counts threads, owners, grants and conflicts', () => import('./threads/stats.ts')),
        assign: command('gives a thread an owner', () => import('./threads/assign.ts')),
        transfer: command('gives the threads of one user to another', () => import('./threads/transfer.ts')),
        revoke: command('removes the owner of a thread: it is foreign to all users', () => import('./threads/revoke.ts')),
        prune: command('deletes rows of deleted or unused threads', () => import('./threads/prune.ts')),
        import: command('imports the owners of existing threads', () => import('./threads/import.ts')),
        export: command('writes threads with their owners to a file', () => import('./threads/export.ts')),
      },
    },
    grants: {
      summary: 'shows and changes grants on threads',
      about: `${ON_STORE}\n${APPLIED} Users and groups are written issuer:name; the groups claim of a token names its user's groups.`,
      commands: {
        list: command('shows the grants on a thread, or those of a user or a group', () => import('./grants/list.ts')),
        add: command('grants a thread to a user or a group', () => import('./grants/add.ts')),
        remove: command('removes a grant', () => import('./grants/remove.ts')),
      },
    },
    store: {
      summary: 'migrates and backs up the store',
      about: ON_STORE,
      commands: {
        migrate: command('migrates the store to the schema of this program', () => import('./store/migrate.ts')),
        backup: command('copies a SQLite store while gateways write to it', () => import('./store/backup.ts')),
      },
    },
    user: {
      summary: 'shows and erases the data of a user',
      about: `${ON_STORE}\nThey neither read nor change the upstream, the log, the audit log and backups.`,
      commands: {
        export: command('writes all data of a user as JSON', () => import('./user/export.ts')),
        erase: command('erases the data of a user', () => import('./user/erase.ts')),
      },
    },
  },
}

function command(summary: string, load: NamedCommand['load']): NamedCommand {
  return { summary, load }
}

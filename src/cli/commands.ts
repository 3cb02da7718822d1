/** The commands of the program. */
import type { CommandGroup, NamedCommand } from './command.ts'

const ON_STORE = 'These commands work on the store of the configuration, also while gateways use it.'
const APPLIED = 'Gateways apply a change within a second.'

export const PROGRAM: CommandGroup = {
  summary: 'authorizes every request to the conversation threads of an agent chat runtime',
  about:
    'threadwarden --help prints this text, threadwarden --version the version.\n\nThe configuration is the file that --config names, else the one that the environment variable THREADWARDEN_CONFIG names,\nelse threadwarden.yaml in the working directory. Output has colours on a terminal. NO_COLOR=1 switches them off, FORCE_COLOR=1 on.',
  commands: {
    init: command('asks the upstream and the issuer what they are, and writes a configuration', () => import('./init.ts')),
    serve: command('runs the gateway', () => import('./serve.ts')),
    validate: command('checks a configuration and its policy', () => import('./validate.ts')),
    routes: command('lists the routes and who may use them', () => import('./routes.ts')),
    explain: command('explains how the gateway decides one request', () => import('./explain.ts')),
    diff: command('shows which decisions change from one policy to another', () => import('./diff.ts')),
    test: command('tests a policy against test files', () => import('./test.ts')),
    health: command('asks whether a running gateway is healthy', () => import('./health.ts')),
    top: command('shows refusals and open streams of a running gateway, again and again', () => import('./top.ts')),
    doctor: command('checks the store, the issuers, the upstreams and the running gateway', () => import('./doctor.ts')),
    'support-bundle': command(
      'writes a file for the person who helps, without secrets, names and ids',
      () => import('./support-bundle.ts'),
    ),
    revoke: command('revokes tokens before they expire', () => import('./revoke.ts')),
    completion: command('prints a completion script for a shell', async () => {
      return { command: (await import('./completion.ts')).completionFor(PROGRAM) }
    }),
    threads: {
      summary: 'shows and changes the owners of threads',
      about: `${ON_STORE}\n${APPLIED} Users are written issuer:subject, as in the log.`,
      commands: {
        list: command('lists threads with their owners', () => import('./threads/list.ts')),
        owner: command('shows the owner of a thread, its grants and its observed users', () => import('./threads/owner.ts')),
        stats: command('counts threads, owners, grants and conflicts', () => import('./threads/stats.ts')),
        assign: command('gives a thread an owner', () => import('./threads/assign.ts')),
        transfer: command('gives the threads of one user to another', () => import('./threads/transfer.ts')),
        revoke: command('removes the owner of a thread, which is then foreign to all users', () => import('./threads/revoke.ts')),
        prune: command('deletes the rows of deleted or unused threads', () => import('./threads/prune.ts')),
        import: command('imports the owners of existing threads', () => import('./threads/import.ts')),
        export: command('exports threads with their owners', () => import('./threads/export.ts')),
      },
    },
    grants: {
      summary: 'shows and changes grants on threads',
      about: `${ON_STORE}\n${APPLIED} Users and groups are written issuer:name; the groups claim of a token names its user's groups.`,
      commands: {
        list: command('lists the grants on a thread, or to a user or a group', () => import('./grants/list.ts')),
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
      about: `${ON_STORE}\nThey do not read or change the upstream, the log, the audit log and backups.`,
      commands: {
        export: command('exports all data of a user as JSON', () => import('./user/export.ts')),
        erase: command('erases the data of a user', () => import('./user/erase.ts')),
      },
    },
  },
}

function command(summary: string, load: NamedCommand['load']): NamedCommand {
  return { summary, load }
}

/** `threadwarden threads list`: shows rows of the ownership table. */
import { rowsOf, shownRow, timeText } from '../../tools/import-export/export.ts'
import { ownerWord } from '../../tools/import-export/problem.ts'
import type { RowFilter, ThreadRow } from '../../store/port.ts'
import { complain, EXIT, printData, printLines, readOptions, UsageError, type Command } from '../command.ts'
import { countOf, userOf } from '../argument-values.ts'
import { onStore, STORE_OPTIONS } from '../with-store.ts'
import { SCOPE_OPTION, scopeNamed } from '../scope-option.ts'
import { table } from '../terminal.ts'

const DEFAULT_LIMIT = 100

const OPTIONS = {
  ...STORE_OPTIONS,
  ...SCOPE_OPTION,
  user: { type: 'string' },
  agent: { type: 'string' },
  deleted: { type: 'boolean' },
  all: { type: 'boolean' },
  limit: { type: 'string' },
} as const

export const list: Command = {
  summary: 'shows threads with their owners',
  help: `threadwarden threads list --config FILE [--user USER] [--agent AGENT] [--scope KEY] [--deleted | --all]
                        [--limit N] [--json]

Shows threads with their owners, in the order of their scopes and ids. Those of another upstream than upstream show its key as
their scope, also where the configuration doesn't have it any more.

  --config FILE  the configuration (YAML or JSON)
  --user USER    only this user's: issuer:subject, or anonymous
  --agent AGENT  only those of this agent
  --scope KEY    only those of the upstream with this key under upstreams or agents, '' for upstream; by default all
  --deleted      only deleted ones, instead of those that are not
  --all          both
  --limit N      so many at most, by default ${DEFAULT_LIMIT}; threads export gives all of them
  --json         prints {"threads", "more"} on stdout

Exit codes: 0 done, 1 an invalid configuration or a failing store, 2 wrong usage.`,

  async run(args) {
    const options = readOptions(args, OPTIONS)
    if (options.deleted === true && options.all === true) throw new UsageError('name --deleted or --all')
    const limit = options.limit === undefined ? DEFAULT_LIMIT : countOf('--limit', options.limit)
    const filter: RowFilter = {
      ...(options.user === undefined ? {} : { owner: userOf('--user', options.user) }),
      ...(options.agent === undefined ? {} : { agentId: options.agent }),
      deleted: options.deleted === true ? 'only' : options.all === true ? 'too' : 'no',
    }
    return onStore(options, async (opened) => {
      const scope = await scopeNamed(options.scope, opened)
      const rows: ThreadRow[] = []
      let more = false
      for await (const row of rowsOf(opened.store, scope === undefined ? filter : { ...filter, scope }, (step) => step())) {
        more = rows.length === limit
        if (more) break
        rows.push(row)
      }
      if (options.json === true) {
        printData({ threads: rows.map((row) => ({ ...shownRow(row), confirmed: !row.provisional })), more })
        return EXIT.fine
      }
      if (rows.length === 0) complain('there are no such threads')
      else printLines(shownTable(rows))
      if (more) complain(`there are more than ${limit}: --limit shows more of them, threads export all`)
      return EXIT.fine
    })
  },
}

function shownTable(rows: readonly ThreadRow[]): string {
  const scoped = rows.some(({ scope }) => scope !== '')
  const cells = (row: ThreadRow): readonly string[] => [
    row.threadId,
    ...(scoped ? [row.scope] : []),
    ...[ownerWord(row.owner), row.agentId, timeText(row.lastUsedAt), stateOf(row), row.name ?? ''],
  ]
  return table(['THREAD', ...(scoped ? ['SCOPE'] : []), 'OWNER', 'AGENT', 'LAST USED', 'STATE', 'NAME'], rows.map(cells))
}

export function stateOf({ deletedAt, archived, provisional }: ThreadRow): string {
  return [
    ...(deletedAt === null ? [] : [`deleted ${timeText(deletedAt)}`]),
    ...(archived ? ['archived'] : []),
    ...(provisional ? ['no run confirmed yet'] : []),
  ].join(', ')
}

/** `threadwarden threads list`: shows rows of the ownership table. */
import { rowsOf, shownRow, timeText } from '../../tools/import-export/export.ts'
import { ownerWord } from '../../tools/import-export/problem.ts'
import type { RowFilter, ThreadRow } from '../../store/port/administration.ts'
import { CONFIG, defineCommand, EXIT, flag, jsonFlag, SCOPE_FILTER, UsageError, value } from '../command.ts'
import { complain, printData, printLines, columns } from '../terminal.ts'
import { countOf, userOf } from '../argument-values.ts'
import { onStore } from '../with-store.ts'

export const command = defineCommand({
  about: `Lists threads with their owners, in the order of their scopes and ids. The scope is the key of the upstream, also if the
configuration no longer has it. Threads of upstream have no scope.`,
  options: {
    config: CONFIG,
    user: value('USER', 'only threads of this user: issuer:subject, or anonymous'),
    agent: value('AGENT', 'only threads of this agent'),
    scope: SCOPE_FILTER,
    deleted: flag('only deleted threads'),
    all: flag('also deleted threads'),
    limit: { ...value('N', 'at most N threads; threads export writes all of them'), default: '100' },
    json: jsonFlag('{"threads", "more"}'),
  },
  exitCodes: { 0: 'done', 1: 'an invalid configuration or a failing store' },
  examples: ['threadwarden threads list --user corp:alice'],

  async run({ user, agent, deleted, all, limit: most, ...values }, terminal) {
    if (deleted && all) throw new UsageError('name either --deleted or --all')
    const limit = countOf('--limit', most)
    const filter: RowFilter = {
      ...(user === undefined ? {} : { owner: userOf('--user', user) }),
      ...(agent === undefined ? {} : { agentId: agent }),
      deleted: deleted ? 'only' : all ? 'too' : 'no',
    }
    return onStore(terminal, values, async ({ store, scope }) => {
      const rows: ThreadRow[] = []
      let more = false
      for await (const row of rowsOf(store, scope === undefined ? filter : { ...filter, scope }, (step) => step())) {
        more = rows.length === limit
        if (more) break
        rows.push(row)
      }
      if (values.json) {
        printData(terminal, { threads: rows.map((row) => ({ ...shownRow(row), confirmed: !row.provisional })), more })
        return EXIT.fine
      }
      if (rows.length === 0) complain(terminal, 'no thread matches')
      else printLines(terminal, shownTable(rows))
      if (more)
        complain(terminal, `more than ${limit} threads match: use --limit to show more, or threadwarden threads export for all`)
      return EXIT.fine
    })
  },
})

function shownTable(rows: readonly ThreadRow[]): string {
  const scoped = rows.some(({ scope }) => scope !== '')
  const cells = (row: ThreadRow): readonly string[] => [
    row.threadId,
    ...(scoped ? [row.scope] : []),
    ...[ownerWord(row.owner), row.agentId, timeText(row.lastUsedAt), stateOf(row), row.name ?? ''],
  ]
  return columns([['THREAD', ...(scoped ? ['SCOPE'] : []), 'OWNER', 'AGENT', 'LAST USED', 'STATE', 'NAME'], ...rows.map(cells)])
}

export function stateOf({ deletedAt, archived, provisional }: ThreadRow): string {
  return [
    ...(deletedAt === null ? [] : [`deleted ${timeText(deletedAt)}`]),
    ...(archived ? ['archived'] : []),
    ...(provisional ? ['unconfirmed'] : []),
  ].join(', ')
}

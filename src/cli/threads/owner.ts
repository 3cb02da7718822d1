/** `threadwarden threads owner`: shows the owner of a thread and all that the store knows about it. */
import { shownRow, timeText } from '../../tools/import-export/export.ts'
import { ownerWord } from '../../tools/import-export/problem.ts'
import { NOBODY, type StoredGrant, type ThreadAdministration, type ThreadKey } from '../../store/port.ts'
import { complain, EXIT, printData, printLines, readArguments, type Command } from '../command.ts'
import { grantLine, shownGrant } from '../format-grant.ts'
import { threadNamed } from '../argument-values.ts'
import { onStore, STORE_OPTIONS } from '../with-store.ts'
import { keyNamed, SCOPE_OPTION, threadData, threadText } from '../scope-option.ts'
import { listed, paintFor } from '../terminal.ts'
import { stateOf } from './list.ts'

type Known = NonNullable<Awaited<ReturnType<ThreadAdministration['thread']>>>

export const owner: Command = {
  summary: 'shows whose a thread is, its grants, and who was seen on it',
  help: `threadwarden threads owner --config FILE ID [--scope KEY] [--json]

Shows whose a thread is, what was granted to whom, and who ran it under enforcement: observe.

  --config FILE  the configuration (YAML or JSON)
  ID             the thread
  --scope KEY    its upstream's key under upstreams or agents; by default it is one of upstream
  --json         prints {"thread", "row", "grants", "observed"} on stdout, with "scope" where the thread is not one of upstream

Exit codes: 0 it has an owner, 1 nobody owns it, an invalid configuration or a failing store, 2 wrong usage.`,

  async run(args) {
    const { values, positionals } = readArguments(args, { ...STORE_OPTIONS, ...SCOPE_OPTION })
    const threadId = threadNamed(positionals)
    return onStore(values, async (opened) => {
      const key = await keyNamed(threadId, values.scope, opened)
      const known = (await opened.store.thread(key)) ?? { row: null, grants: [], runners: [] }
      if (values.json === true) printData(asData(key, known))
      else say(key, known)
      return known.row === null || known.row.owner === NOBODY ? EXIT.failure : EXIT.fine
    })
  },
}

function asData(key: ThreadKey, { row, grants, runners }: Known): object {
  return {
    ...threadData(key),
    row: row === null ? null : { ...shownRow(row), confirmed: !row.provisional },
    grants: grants.map(shownGrant),
    observed: runners,
  }
}

function say(key: ThreadKey, { row, grants, runners }: Known): void {
  const seen = runners.map((user) => `${user} ran it under enforcement: observe`)
  if (row === null) {
    complain(`${threadText(key)} has no owner: ${seen.length === 0 ? 'nobody ever heard of it' : seen.join(', ')}`)
    return
  }
  const { agentId, name, createdAt, lastUsedAt } = row
  const state = stateOf(row)
  printLines(
    listed(
      [
        ['thread', [key.threadId]],
        ['scope', key.scope === '' ? [] : [key.scope]],
        ['owner', [row.owner === NOBODY ? 'nobody: it was taken away' : ownerWord(row.owner)]],
        ['agent', agentId === '' ? [] : [agentId]],
        ['name', name === null ? [] : [name]],
        ['created', [timeText(createdAt)]],
        ['used', [timeText(lastUsedAt)]],
        ['state', state === '' ? [] : [state]],
        ['granted', grants.map((grant: StoredGrant) => grantLine(grant))],
        ['seen', seen],
      ],
      paintFor(process.stdout, process.env),
    ),
  )
}

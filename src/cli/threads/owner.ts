/** `threadwarden threads owner`: shows the owner of a thread and all that the store knows about it. */
import { shownRow, timeText } from '../../tools/import-export/export.ts'
import { ownerWord } from '../../tools/import-export/problem.ts'
import { NOBODY, type ThreadKey } from '../../store/port/thread.ts'
import { shownGrant } from '../../operator/grant-form.ts'
import { CONFIG, defineCommand, EXIT, jsonFlag, THREAD_SCOPE, WITH_SCOPE } from '../command.ts'
import { complain, printData, printEntries, type Terminal } from '../terminal.ts'
import { threadNamed } from '../argument-values.ts'
import { grantLine, threadData, threadText } from '../format-thread.ts'
import { onStore } from '../with-store.ts'
import { stateOf } from './list.ts'
import type { ThreadRow, WholeThread } from '../../store/port/administration.ts'

export const command = defineCommand({
  about: 'Shows the owner of a thread, the grants on it, and the users who ran it under enforcement: observe.',
  positionals: { ID: 'the thread' },
  options: { config: CONFIG, scope: THREAD_SCOPE, json: jsonFlag('{"thread", "row", "grants", "observed"}', WITH_SCOPE) },
  exitCodes: { 0: 'the thread has an owner', 1: 'the thread has no owner, an invalid configuration or a failing store' },
  examples: ['threadwarden threads owner t-1'],

  async run(values, terminal, positionals) {
    const threadId = threadNamed(positionals)
    return onStore(terminal, values, async ({ store, keyOf }) => {
      const key = keyOf(threadId)
      const known = (await store.thread(key)) ?? { row: null, grants: [], runners: [] }
      if (values.json) printData(terminal, asData(key, known))
      else say(terminal, key, known)
      return known.row === null || known.row.owner === NOBODY ? EXIT.failure : EXIT.fine
    })
  },
})

function asData(key: ThreadKey, { row, grants, runners }: WholeThread): object {
  return {
    ...threadData(key),
    row: row === null ? null : { ...shownRow(row), confirmed: !row.provisional },
    grants: grants.map(shownGrant),
    observed: runners,
  }
}

function say(terminal: Terminal, key: ThreadKey, { row, grants, runners }: WholeThread): void {
  const seen = runners.map((user) => `${user} ran it under enforcement: observe`)
  if (row === null) {
    complain(terminal, `${threadText(key)} has no owner: ${seen.length === 0 ? 'the store does not know it' : seen.join(', ')}`)
    return
  }
  const { agentId, name, createdAt, lastUsedAt } = row
  const state = stateOf(row)
  printEntries(terminal, [
    ['thread', [key.threadId]],
    ['scope', key.scope === '' ? [] : [key.scope]],
    ['owner', [row.owner === NOBODY ? whyNone(row) : ownerWord(row.owner)]],
    ['agent', agentId === '' ? [] : [agentId]],
    ['name', name === null ? [] : [name]],
    ['created', [timeText(createdAt)]],
    ['used', [timeText(lastUsedAt)]],
    ['state', state === '' ? [] : [state]],
    ['granted', grants.map(grantLine)],
    ['seen', seen],
  ])
}

/** A revoked owner, one whose data was erased, and `nobody` of an import are the same in the table. Only an erased user's thread is deleted. */
function whyNone({ deletedAt }: ThreadRow): string {
  return deletedAt === null
    ? 'none: revoked, or imported as "nobody"'
    : 'none: the owner was revoked, or the data of the owner was erased'
}

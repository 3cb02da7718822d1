/** `threadwarden threads assign`: gives a thread an owner. */
import { NOBODY_WORD } from '../../tools/import-export/entry.ts'
import { ownerWord } from '../../tools/import-export/problem.ts'
import type { AssignOutcome } from '../../store/port/administration.ts'
import { NOBODY, type ThreadKey } from '../../store/port/thread.ts'
import { CommandFailed, CONFIG, defineCommand, EXIT, jsonFlag, THREAD_SCOPE, UsageError, value, WITH_SCOPE } from '../command.ts'
import { print, printData } from '../terminal.ts'
import { requireOwner, threadNamed, userOf } from '../argument-values.ts'
import { threadData, threadText } from '../format-thread.ts'
import { onStore } from '../with-store.ts'

export const command = defineCommand({
  usage: ['ID --to USER'],
  about: `Makes a user the owner of a thread and replaces an earlier owner. It removes the grants on the thread, restores a deleted thread,
and settles the observations under enforcement: observe. If the table has no row for the thread, the command adds one.`,
  positionals: { ID: 'the thread' },
  options: {
    config: CONFIG,
    to: value('USER', 'the new owner: issuer:subject'),
    scope: THREAD_SCOPE,
    expect: value('WHO', 'changes nothing unless WHO is the owner: a user, "nobody" (owner revoked) or "none" (no row)'),
    json: jsonFlag('{"thread", "outcome", "before"} or {"thread", "outcome", "user"}', WITH_SCOPE),
  },
  exitCodes: { 0: 'the user is the owner', 1: 'the owner is not the expected one, an invalid configuration or a failing store' },
  examples: [
    'threadwarden threads assign t-1 --to corp:alice',
    'threadwarden threads assign t-1 --to corp:alice --expect corp:bob',
  ],

  async run(values, terminal, positionals) {
    const { to } = values
    const threadId = threadNamed(positionals)
    if (to === undefined) throw new UsageError('--to USER is missing')
    userOf('--to', to)
    const expected = expectedIn(values.expect)
    return onStore(terminal, values, async ({ store, prepared, keyOf }) => {
      const key = keyOf(threadId)
      requireOwner('--to', to, prepared.config)
      const result = await store.assign(key, to, Date.now(), expected)
      const thread = threadText(key)
      if (values.json) printData(terminal, asData(key, result))
      if (result.outcome === 'changed')
        throw new CommandFailed(`nothing was changed: the owner of ${thread} is ${whose(result.owner)}`)
      const text = result.outcome === 'same' ? ' already' : `; before: ${whose(result.before)}`
      if (!values.json) print(terminal, `${thread} belongs to ${to}${text}`)
      return EXIT.fine
    })
  },
})

/** @throws UsageError for an invalid owner */
function expectedIn(text: string | undefined): string | null | undefined {
  if (text === undefined) return undefined
  if (text === 'none') return null
  if (text === NOBODY_WORD) return NOBODY
  return userOf('--expect', text)
}

function asData(key: ThreadKey, result: AssignOutcome): object {
  const { outcome } = result
  const user =
    outcome === 'assigned' ? { before: word(result.before) } : outcome === 'changed' ? { user: word(result.owner) } : {}
  return { ...threadData(key), outcome, ...user }
}

function word(user: string | null): string | null {
  return user === null ? null : ownerWord(user)
}

function whose(user: string | null): string {
  return word(user) ?? 'none: the table has no row'
}

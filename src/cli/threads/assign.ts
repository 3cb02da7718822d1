/** `threadwarden threads assign`: gives a thread an owner. */
import { NOBODY_WORD } from '../../tools/import-export/entry.ts'
import { ownerWord } from '../../tools/import-export/problem.ts'
import { NOBODY, type AssignOutcome, type ThreadKey } from '../../store/port.ts'
import { complain, EXIT, print, printData, readArguments, UsageError, type Command } from '../command.ts'
import { newUserOf, threadNamed, userOf } from '../argument-values.ts'
import { onStore, peopleIn, STORE_OPTIONS } from '../with-store.ts'
import { keyNamed, SCOPE_OPTION, threadData, threadText } from '../scope-option.ts'

const OPTIONS = { ...STORE_OPTIONS, ...SCOPE_OPTION, to: { type: 'string' }, expect: { type: 'string' } } as const

export const assign: Command = {
  summary: 'gives a thread an owner',
  help: `threadwarden threads assign --config FILE ID --to USER [--scope KEY] [--expect USER|none|nobody] [--json]

Gives a thread to a user, whoever had it: the grants on it go, a deleted thread is a live one again, and what was seen of it
under enforcement: observe is settled. A thread that the table doesn't have gets a row.

  --config FILE  the configuration (YAML or JSON)
  ID             the thread
  --to USER      the owner to be: issuer:subject
  --scope KEY    its upstream's key under upstreams or agents; by default it is one of upstream
  --expect WHO   changes nothing unless it is theirs now: a user, none for a thread without a row, nobody for one whose
                 owner was taken away
  --json         prints {"thread", "outcome", "before"} or {"thread", "outcome", "user"} on stdout, with "scope" behind
                 "thread" where the thread is not one of upstream

Exit codes: 0 it is theirs, 1 somebody else has it than was expected, an invalid configuration or a failing store,
2 wrong usage.`,

  async run(args) {
    const { values, positionals } = readArguments(args, OPTIONS)
    const { to } = values
    const threadId = threadNamed(positionals)
    if (to === undefined) throw new UsageError('--to USER is missing')
    userOf('--to', to)
    const expected = expectedIn(values.expect)
    return onStore(values, async (opened) => {
      const { store, prepared } = opened
      const key = await keyNamed(threadId, values.scope, opened)
      newUserOf('--to', to, peopleIn(prepared.config))
      const result = await store.assign(key, to, Date.now(), expected)
      const thread = threadText(key)
      if (values.json === true) printData(asData(key, result))
      switch (result.outcome) {
        case 'assigned':
          if (values.json !== true) print(`${thread} belongs to ${to}; before: ${whose(result.before)}`)
          return EXIT.fine
        case 'same':
          if (values.json !== true) print(`${thread} belongs to ${to} already`)
          return EXIT.fine
        case 'changed':
          complain(`nothing was changed: the owner of ${thread} is ${whose(result.owner)}`)
          return EXIT.failure
      }
    })
  },
}

/** @throws UsageError for an invalid owner */
function expectedIn(text: string | undefined): string | null | undefined {
  if (text === undefined) return undefined
  if (text === 'none') return null
  if (text === NOBODY_WORD) return NOBODY
  return userOf('--expect', text)
}

function asData(key: ThreadKey, result: AssignOutcome): object {
  const thread = threadData(key)
  switch (result.outcome) {
    case 'assigned':
      return { ...thread, outcome: result.outcome, before: word(result.before) }
    case 'changed':
      return { ...thread, outcome: result.outcome, user: word(result.owner) }
    case 'same':
      return { ...thread, outcome: result.outcome }
  }
}

function word(user: string | null): string | null {
  return user === null ? null : ownerWord(user)
}

function whose(user: string | null): string {
  return word(user) ?? 'none, without a row'
}

/** What workers wrote down of their calls, and what it says. */
import { existsSync, readFileSync } from 'node:fs'
import { findOrder, type Operation } from './linearizable.ts'
import type { Answer, Call } from './thread-calls.ts'
import { doCall, stateText, type ThreadState } from './thread-model.ts'

/** The thread of a call that is about all of them. */
export const ALL_THREADS = '*'

/** Of all calls one is begun with a line and ended with another, so that what a kill cut off is known to have begun. */
export type Line =
  | { readonly at: number; readonly thread: string; readonly call: Call; readonly from: number }
  | { readonly at: number; readonly to: number; readonly answer: Answer }
  /** Nobody knows what became of it, or it was a look: then there is nothing to know. */
  | { readonly at: number; readonly failed: string; readonly look: boolean }

/** A call on a thread. */
export type Done = Operation<Call, Answer>

/** The calls on each thread. */
export type Histories = Map<string, Done[]>

/** What was read. */
export interface Read {
  readonly histories: Histories
  /** How often the store said that it can't. */
  readonly failures: number
}

/** Milliseconds of a clock that all processes of a machine share. */
export function clock(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

/**
 * Reads what workers wrote.
 * @param files each of one worker, who may have been killed before it began; a last line that was cut off is left out
 */
export function readHistories(files: readonly string[]): Read {
  const histories: Histories = new Map()
  let failures = 0
  for (const file of files.filter((one) => existsSync(one))) {
    const begun = new Map<number, { thread: string; call: Call; from: number }>()
    const put = (thread: string, done: Done): void => {
      const history = histories.get(thread)
      if (history === undefined) histories.set(thread, [done])
      else history.push(done)
    }
    const whole = readFileSync(file, 'utf8').split('\n').slice(0, -1)
    for (const line of whole.map((text) => JSON.parse(text) as Line)) {
      if ('call' in line) {
        begun.set(line.at, line)
        continue
      }
      const { thread, call, from } = begun.get(line.at)!
      begun.delete(line.at)
      if ('to' in line) put(thread, { call, from, to: line.to, answer: line.answer })
      else failures += 1
      if ('failed' in line && !line.look) put(thread, { call, from, to: null, answer: null })
    }
    for (const { thread, call, from } of begun.values()) put(thread, { call, from, to: null, answer: null })
  }
  const ofAll = histories.get(ALL_THREADS) ?? []
  histories.delete(ALL_THREADS)
  for (const history of histories.values()) history.push(...ofAll)
  return { histories, failures }
}

/** The history of a thread that is in no order, in words; null if it is in one. */
export function disorder(thread: string, history: readonly Done[]): string | null {
  const verdict = findOrder(history, { first: null as ThreadState, do: doCall, text: stateText })
  if (verdict.ok) return null
  const last = verdict.order.slice(-12)
  return [
    `${thread}: ${history.length} calls, of which ${verdict.order.length} could be put in an order that ends with`,
    ...last.map(words),
    `in the state ${stateText(verdict.state)}; none of these can come next:`,
    ...verdict.stuck.map(words),
  ].join('\n')
}

function words({ call, from, to, answer }: Done): string {
  return `  ${from.toFixed(3)} to ${to === null ? '?' : to.toFixed(3)} ${JSON.stringify(call)} -> ${to === null ? '?' : JSON.stringify(answer)}`
}

/** What became of the claims of a thread that no operator worked on. */
export interface Claims {
  readonly attempted: number
  /** Claims that were answered, and whose run was then settled as started, or that were of a thread settled before. */
  readonly confirmed: number
  readonly owners: ReadonlySet<string>
  /** True if somebody else's claim was taken after an owner's was confirmed, or two users' were confirmed. */
  readonly doubled: boolean
}

/** Reads the claims of a history of the mix `runs`. */
export function claimsIn(history: readonly Done[]): Claims {
  const claims = history.filter(({ call }) => call.op === 'claim')
  const confirmations = history.flatMap(({ call, to, answer }) => {
    if (to === null) return []
    const settled = call.op === 'settle' && call.outcome === 'confirmed'
    const known = call.op === 'claim' && isTaken(answer) && answer.registration === null
    return settled || known ? [{ user: call.user, at: to }] : []
  })
  const later = claims.filter(
    ({ call, from, answer }) =>
      call.op === 'claim' && isTaken(answer) && confirmations.some(({ user, at }) => user !== call.user && at < from),
  )
  const owners = new Set(confirmations.map(({ user }) => user))
  return { attempted: claims.length, confirmed: confirmations.length, owners, doubled: owners.size > 1 || later.length > 0 }
}

function isTaken(answer: Answer): answer is { readonly outcome: 'new' | 'own'; readonly registration: number | null } {
  return (
    typeof answer === 'object' && answer !== null && 'outcome' in answer && (answer.outcome === 'new' || answer.outcome === 'own')
  )
}

/** Makes what is asked in a soak, kind by kind. */
import type { KindName } from './answer.ts'
import type { Question } from './asking.ts'
import type { SoakIssuer, Token } from './issuer.ts'
import { OWNED, SUBJECTS } from './people.ts'
import { writeRunId, type Script } from './run-id.ts'

/** Makes them. */
export interface Questions {
  make(kind: KindName): Question
  /** A thread was claimed by a first run: it may be asked for by others from now on, and must be refused to them. */
  claimed(threadId: string, subject: string): void
  /** Whether this policy refuses to stop runs, from now on. */
  stopIsRefused: boolean
}

/** What they are made with. */
export interface QuestionParts {
  readonly issuer: SoakIssuer
  /** Of a token, in milliseconds. */
  readonly life: number
  /** From 0 to 1. */
  readonly random: () => number
}

/** Threads that were claimed and are asked for by others: the last ones. */
const FRESH = 500

/** Of a body of 16 KB. */
const MESSAGES = Array.from({ length: 9 }, (_, at) => ({
  id: `m${at}`,
  role: at % 2 === 0 ? 'user' : 'assistant',
  content: 'x'.repeat(1750),
}))

const TEN: Script = { events: 10, every: 20, isFilled: false }
const LARGE: Script = { events: 256, every: 0, isFilled: true }

/** A token is not used on purpose after its end before so many milliseconds have passed: the clock tolerance, and more. */
const SURELY_OVER = 3000

/** Makes the maker. */
export function makeQuestions({ issuer, life, random }: QuestionParts): Questions {
  const tokens = new Map<string, Token>()
  const formerTokens = new Map<string, Token>()
  const fresh: { readonly threadId: string; readonly subject: string }[] = []
  const ownOf = new Map(SUBJECTS.map((one) => [one, new Set(OWNED.filter((t) => t.subject === one).map((t) => t.threadId))]))
  const session = Math.floor(random() * 2 ** 32).toString(36)
  let made = 0

  const one = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!
  const nonce = (): string => `${session}x${(made += 1)}`

  const tokenOf = (subject: string): Token => {
    const held = tokens.get(subject)
    if (held !== undefined && held.ends - Date.now() > life / 3) return held
    if (held !== undefined) formerTokens.set(subject, held)
    const token = issuer.token(subject, life * (0.7 + 0.6 * random()))
    tokens.set(subject, token)
    return token
  }
  /** One that was good and is over, if there is one: the gateway may have it in its memory. */
  const overTokenOf = (subject: string): Token => {
    const former = formerTokens.get(subject)
    const over = former === undefined ? -1 : Date.now() - former.ends
    // The key of one that is older may be published no longer.
    return former !== undefined && over > SURELY_OVER && over < SURELY_OVER + life ? former : issuer.token(subject, -60_000)
  }
  const runOn = (threadId: string, subject: string, script: Script, route: 'run' | 'connect' = 'run') => {
    const runId = writeRunId(script, nonce())
    const body = { threadId, runId, state: {}, messages: MESSAGES, tools: [], context: [], forwardedProps: {} }
    return { method: 'POST', path: `/agent/default/${route}`, body, token: tokenOf(subject), threadId, runId } as const
  }
  const foreign = (): Question => {
    const wanted = { outcome: 'refused', status: 403, code: 'not-owner' } as const
    const { threadId, subject: owner } = fresh.length > 0 && random() < 0.5 ? one(fresh) : one(OWNED)
    const subject = one(SUBJECTS.filter((other) => other !== owner))
    const token = tokenOf(subject)
    const asked = Math.floor(random() * 4)
    if (asked === 0) return { kind: 'foreign', wanted, method: 'GET', path: `/threads/${threadId}/messages`, token }
    if (asked === 1) return { kind: 'foreign', wanted, method: 'POST', path: `/threads/${threadId}/archive`, body: {}, token }
    return { ...runOn(threadId, subject, TEN, asked === 2 ? 'run' : 'connect'), kind: 'foreign', wanted }
  }
  const noGoodToken = (kind: KindName, code: string, token: Token | null): Question => {
    const wanted = { outcome: 'refused', status: 401, code } as const
    const { threadId } = one(OWNED)
    const asked: Question = { kind, wanted, method: 'GET', path: `/threads/${threadId}/messages`, token }
    if (random() < 0.5) return asked
    const { body } = runOn(threadId, one(SUBJECTS), TEN)
    return { ...asked, method: 'POST', path: '/agent/default/run', body }
  }

  const makers: Readonly<Record<KindName, () => Question>> = {
    messages() {
      const { threadId, subject } = one(OWNED)
      const path = `/threads/${threadId}/messages`
      return { kind: 'messages', wanted: { outcome: 'answered' }, method: 'GET', path, token: tokenOf(subject), threadId }
    },
    run() {
      const { threadId, subject } = one(OWNED)
      return { ...runOn(threadId, subject, TEN), kind: 'run', wanted: { outcome: 'answered' } }
    },
    stream() {
      const { threadId, subject } = one(OWNED)
      // Some end before their token, and some don't.
      const events = 3 + Math.floor((random() * 1.2 * life) / 1000)
      const route = random() < 0.5 ? 'run' : 'connect'
      const script = { events, every: 1000, isFilled: false }
      return { ...runOn(threadId, subject, script, route), kind: 'stream', wanted: { outcome: 'streamed' } }
    },
    first() {
      const subject = one(SUBJECTS)
      return { ...runOn(`new-${nonce()}`, subject, TEN), kind: 'first', wanted: { outcome: 'answered' }, subject }
    },
    leave() {
      const { threadId, subject } = one(OWNED)
      const leaveAfter = 1 + Math.floor(8 * random())
      return { ...runOn(threadId, subject, TEN), kind: 'leave', wanted: { outcome: 'answered' }, leaveAfter }
    },
    slow() {
      const { threadId, subject } = one(OWNED)
      return { ...runOn(threadId, subject, LARGE), kind: 'slow', wanted: { outcome: 'answered' }, pause: 60 }
    },
    list() {
      const subject = one(SUBJECTS)
      const listed = ownOf.get(subject)!
      const path = '/threads?agentId=default'
      return { kind: 'list', wanted: { outcome: 'answered' }, method: 'GET', path, token: tokenOf(subject), listed }
    },
    info: () => ({
      ...{ kind: 'info', wanted: { outcome: 'answered' }, method: 'GET', path: '/info', token: tokenOf(one(SUBJECTS)) },
    }),
    stop() {
      const { threadId, subject } = one(OWNED)
      const path = `/agent/default/stop/${threadId}`
      const token = tokenOf(subject)
      return questions.stopIsRefused
        ? { kind: 'stop', wanted: { outcome: 'refused', status: 403, code: 'not-allowed' }, method: 'POST', path, token }
        : { kind: 'stop', wanted: { outcome: 'answered' }, method: 'POST', path, token, threadId }
    },
    foreign,
    missing: () => noGoodToken('missing', 'credential-missing', null),
    expired: () => noGoodToken('expired', 'credential-expired', overTokenOf(one(SUBJECTS))),
    forged: () => noGoodToken('forged', 'credential-invalid', issuer.forged(one(SUBJECTS), life)),
  }
  const questions: Questions = {
    make: (kind) => makers[kind](),
    claimed(threadId, subject) {
      fresh.push({ threadId, subject })
      if (fresh.length > FRESH) fresh.shift()
    },
    stopIsRefused: false,
  }
  return questions
}

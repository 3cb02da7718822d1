/** The load: so many questions a second, of all kinds by chance, and so many streams that are open all the time. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'
import type { Answer, KindName } from './answer.ts'
import { ask, type Question } from './asking.ts'
import type { Questions } from './questions.ts'

/** What it is. */
export interface LoadParts {
  readonly port: number
  readonly questions: Questions
  /** Questions a second, besides the streams. */
  readonly rate: number
  /** Streams that are open all the time. */
  readonly streams: number
  readonly random: () => number
  readonly take: (answer: Answer) => void
}

/** It runs. */
export interface Load {
  /** First runs that were answered to their end, whose thread therefore has a row. */
  readonly claimed: () => number
  /** First runs that were asked for. */
  readonly asked: () => number
  /** Questions that were not asked, because as many as there may be were under way. */
  readonly heldBack: () => number
  /** Asks nothing more, leaves the streams, and waits for the other answers. */
  stop(): Promise<void>
}

/** How often a kind is asked, against the others. */
const SHARES: Readonly<Partial<Record<KindName, number>>> = {
  ...{ messages: 50, run: 15, first: 2, leave: 5, slow: 0.15, list: 2, info: 2, stop: 4 },
  ...{ foreign: 10, missing: 3, expired: 3, forged: 1 },
}

/** What is under way at the same time at most, besides streams: a machine that stalls is not buried under what is due. */
const MOST = 500

/** Milliseconds between two looks at what is due. */
const TICK = 20

/** How long a stream is not opened again that was not to be had, in milliseconds. */
const PAUSE = 1000

/** How long the last answers may take, in milliseconds. */
const PATIENCE = 15_000

/** Begins. */
export function startLoad({ port, questions, rate, streams, random, take }: LoadParts): Load {
  const client = new Pool(`http://127.0.0.1:${port}`, {
    ...{ connections: null, pipelining: 1, headersTimeout: 60_000, bodyTimeout: 60_000 },
  })
  const leaving = new AbortController()
  const isOver = (): boolean => leaving.signal.aborted
  const impatience = new AbortController()
  const underWay = new Set<Promise<void>>()
  let claimed = 0
  let asked = 0
  let heldBack = 0

  const kindOf = chooser(random)
  const askOne = async (question: Question, signal: AbortSignal): Promise<Answer> => {
    const answer = await ask(client, question, signal)
    take(answer)
    return answer
  }
  const shortOne = async (): Promise<void> => {
    const question = questions.make(kindOf())
    if (question.kind === 'first') asked += 1
    const { status, ending } = await askOne(question, impatience.signal)
    if (question.kind !== 'first' || status !== 200 || ending !== 'complete') return
    claimed += 1
    questions.claimed(question.threadId!, question.subject!)
  }
  const begin = (): void => {
    const one = shortOne().finally(() => underWay.delete(one))
    underWay.add(one)
  }

  let due = 0
  let last = performance.now()
  const timer = setInterval(() => {
    const now = performance.now()
    // What a stall has kept from being asked is not asked all at once.
    due += (rate * Math.min(now - last, 1000)) / 1000
    last = now
    for (; due >= 1; due -= 1) {
      if (underWay.size < MOST) begin()
      else heldBack += 1
    }
  }, TICK)

  const keepStream = async (at: number): Promise<void> => {
    // They don't begin all at once, nor after that.
    await sleep(Math.min(20 * at, 5000))
    while (!isOver()) {
      const { ending, status } = await askOne(questions.make('stream'), leaving.signal)
      if (!isOver() && (ending === 'cut' || status !== 200)) await sleep(PAUSE * (0.5 + random()))
    }
  }
  const kept = Array.from({ length: streams }, (_, at) => keepStream(at))

  return {
    claimed: () => claimed,
    asked: () => asked,
    heldBack: () => heldBack,
    async stop() {
      clearInterval(timer)
      leaving.abort()
      const patience = setTimeout(() => impatience.abort(), PATIENCE)
      await Promise.all([...underWay, ...kept])
      clearTimeout(patience)
      await client.destroy()
    },
  }
}

/** Chooses kinds by their shares. */
function chooser(random: () => number): () => KindName {
  const shares = Object.entries(SHARES) as [KindName, number][]
  const all = shares.reduce((sum, [, share]) => sum + share, 0)
  return () => {
    let left = random() * all
    for (const [kind, share] of shares) if ((left -= share) < 0) return kind
    return 'messages'
  }
}

/** Users who run, delete and read on a few threads, each at any gateway, all at once; and what they were told. */
import { MARK, type Fate, type Wish } from './ledger.ts'
import type { Moments } from './moments.ts'

/** What a user was told. */
export interface Told {
  readonly mark: string
  readonly thread: string
  readonly user: string
  /** A run, by what becomes of it upstream, or something else. */
  readonly act: Fate | 'delete' | 'read'
  readonly from: number
  readonly to: number
  /** 0 where the connection broke before an answer. */
  readonly status: number
  readonly code: string | undefined
}

/** Who does what where. */
export interface CrowdParts {
  /** Public bases of the gateways that may be asked now. */
  readonly bases: () => readonly string[]
  readonly tokenOf: (subject: string) => string
  readonly subjects: readonly string[]
  readonly threads: readonly string[]
  /** How many requests are under way at once. */
  readonly lanes: number
  readonly moments: Moments
  /** Of 0 to 1, as Math.random gives them. */
  readonly random: () => number
}

/** A crowd. */
export interface Crowd {
  /** Ends it when all answers are there. */
  readonly stop: () => Promise<readonly Told[]>
}

/** The longest time that a run is at the upstream before it is answered, in milliseconds. */
const LONGEST = 15

/** Lets it loose. */
export function startCrowd(parts: CrowdParts): Crowd {
  const { random } = parts
  const told: Told[] = []
  let stopped = false
  const any = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!
  const lane = async (): Promise<void> => {
    while (!stopped) {
      const [thread, subject, chance] = [any(parts.threads), any(parts.subjects), random()]
      told.push(await askAs(parts, any(parts.bases()), thread, subject, actBy(chance)))
    }
  }
  const lanes = Promise.all(Array.from({ length: parts.lanes }, lane))
  return {
    async stop() {
      stopped = true
      await lanes
      return told
    },
  }
}

/** Makes one request. */
export async function askAs(
  { tokenOf, moments, random }: Pick<CrowdParts, 'tokenOf' | 'moments' | 'random'>,
  base: string,
  thread: string,
  subject: string,
  act: Told['act'],
): Promise<Told> {
  const from = moments()
  const mark = `mark-${from}`
  const [method, target] = TARGETS[act](thread)
  const wish = (fate: Fate): Wish => ({ fate, after: Math.floor(random() * LONGEST) })
  const body = isRun(act) ? JSON.stringify(runOn(thread, wish(act))) : null
  const headers = {
    authorization: `Bearer ${tokenOf(subject)}`,
    [MARK]: mark,
    ...(body === null ? {} : { 'content-type': 'application/json' }),
  }
  const { status, code } = await answerTo(`${base}/${target}`, { method, headers, body })
  return { mark, thread, user: `corp:${subject}`, act, from, to: moments(), status, code }
}

const run = (): readonly [string, string] => ['POST', 'agent/default/run']

const TARGETS: Readonly<Record<Told['act'], (thread: string) => readonly [string, string]>> = {
  started: run,
  refused: run,
  broken: run,
  delete: (thread) => ['DELETE', `threads/${thread}`],
  read: (thread) => ['GET', `threads/${thread}/messages`],
}

/** True for an act that is a run. */
export function isRun(act: Told['act']): act is Fate {
  return act !== 'delete' && act !== 'read'
}

/** What is done by chance, of 0 to 1. Most runs are refused: what was started once is never released. */
function actBy(chance: number): Told['act'] {
  if (chance < 0.3) return 'started'
  if (chance < 0.7) return 'refused'
  if (chance < 0.75) return 'broken'
  return chance < 0.87 ? 'delete' : 'read'
}

/** The body of a run. */
function runOn(threadId: string, wish: Wish): Record<string, unknown> {
  const messages = [{ id: 'm1', role: 'user', content: JSON.stringify(wish) }]
  return { threadId, runId: crypto.randomUUID(), state: {}, messages, tools: [], context: [], forwardedProps: {} }
}

/** Asks and reads all of the answer. */
async function answerTo(url: string, request: RequestInit): Promise<Pick<Told, 'status' | 'code'>> {
  try {
    const answer = await fetch(url, request)
    const text = await answer.text()
    return { status: answer.status, code: /"code":"([^"]*)"/.exec(text)?.[1] }
  } catch {
    return { status: 0, code: undefined }
  }
}

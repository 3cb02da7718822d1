/** Who has which threads and runs on the fuzzed LangGraph server. Alice is the caller. */

export const ASSISTANT = 'notes'

/** Of Alice. The second one has a run under way. */
export const OWN = ['0a0e4f7a-6f0c-4a55-9d3c-2f6d8a1b9c01', '0a0e4f7a-6f0c-4a55-9d3c-2f6d8a1b9c02'] as const
/** Of Bob. */
export const FOREIGN = ['0b0e4f7a-6f0c-4a55-9d3c-2f6d8a1b9c01', '0b0e4f7a-6f0c-4a55-9d3c-2f6d8a1b9c02'] as const
/** Of Carol, who lets Alice read it. */
export const SHARED = '0c0e4f7a-6f0c-4a55-9d3c-2f6d8a1b9c01'
/** The server has it, and the gateway's table does not. */
export const ORPHAN = '0d0e4f7a-6f0c-4a55-9d3c-2f6d8a1b9c01'
/** The server does not have them. */
export const NEW = ['0e0e4f7a-6f0c-4a55-9d3c-2f6d8a1b9c01', '0e0e4f7a-6f0c-4a55-9d3c-2f6d8a1b9c02'] as const

/** No case has these words, and everything that Alice may not read has one of them. */
export const SECRETS = ['bobs-secret', 'orphans-secret', 'environments-secret'] as const

/** The variable of the server's environment that has the last of them. */
export const ENVIRONMENT = 'THREADWARDEN_FUZZ_SECRET'

interface Kept {
  readonly threadId: string
  readonly runId: string
  /** What every part of it contains. */
  readonly word: string
  readonly runIs: 'success' | 'pending'
}

export const KEPT: readonly Kept[] = [
  { threadId: OWN[0], runId: runOf(OWN[0]), word: 'alices-words', runIs: 'success' },
  { threadId: OWN[1], runId: runOf(OWN[1]), word: 'alices-words', runIs: 'pending' },
  { threadId: FOREIGN[0], runId: runOf(FOREIGN[0]), word: SECRETS[0], runIs: 'success' },
  { threadId: FOREIGN[1], runId: runOf(FOREIGN[1]), word: SECRETS[0], runIs: 'pending' },
  { threadId: SHARED, runId: runOf(SHARED), word: 'carols-words', runIs: 'success' },
  { threadId: ORPHAN, runId: runOf(ORPHAN), word: SECRETS[1], runIs: 'success' },
]

export function runOf(threadId: string): string {
  return threadId.replace('-6f0c-', '-7a7a-')
}

/** The checkpoints of a thread have numbers, the latest the largest. */
export function checkpointOf(threadId: string, number: number): string {
  return `1f0${threadId.slice(1, 2)}${threadId.slice(-1)}${String(number).padStart(3, '0')}-6f0c-6a55-9d3c-2f6d8a1b9c0e`
}

const FOREIGN_THREADS: ReadonlySet<string> = new Set(FOREIGN)
const FOREIGN_RUNS: ReadonlySet<string> = new Set(FOREIGN.map(runOf))

/** True for a thread of Bob, as any server may read its id: some ignore the case of a UUID. */
export function isForeignThread(id: unknown): boolean {
  return typeof id === 'string' && FOREIGN_THREADS.has(id.toLowerCase())
}

/** True for a run of Bob. A new thread may have the id of a run: it is no run. */
export function isForeignRun(id: unknown): boolean {
  return typeof id === 'string' && FOREIGN_RUNS.has(id.toLowerCase())
}

/** True for a thread that Alice may not change. */
export function isOthers(threadId: unknown): boolean {
  return (
    typeof threadId === 'string' &&
    !(OWN as readonly string[]).includes(threadId) &&
    KEPT.some((one) => one.threadId === threadId)
  )
}

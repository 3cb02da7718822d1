/** The requests of a soak, their expected answers, and their answers. */

/** The kinds of requests, by their names in the result. */
export const KINDS = {
  messages: 'messages of an own thread',
  run: 'run of 16 KB, answered by ten events',
  stream: 'long run or connect, with one event a second',
  first: 'first run on a new thread, which claims it',
  leave: 'run whose client disconnects during the answer',
  slow: 'run answered by 4 MB, whose client reads slowly',
  list: 'list of threads',
  info: 'info of the runtime',
  stop: 'stop of an own thread, which one of the two policies refuses',
  foreign: "another user's thread: messages, connect, run, archive",
  missing: 'no token',
  expired: 'expired token',
  forged: 'token of an unknown key',
} as const

export type KindName = keyof typeof KINDS

/** How it has to be answered. */
export type Expectation =
  /** 2xx, to the end, with all that was asked for. */
  | { readonly outcome: 'answered' }
  /** Likewise, but an open stream may end with its token. */
  | { readonly outcome: 'streamed' }
  | { readonly outcome: 'refused'; readonly status: number; readonly code: string }

/** An answer. Times are milliseconds since 1970. */
export interface Answer {
  readonly kind: KindName
  readonly wanted: Expectation
  /** When it was asked, and when the answer was over. */
  readonly began: number
  readonly ended: number
  /** Null: no head came. */
  readonly status: number | null
  /** By which the log of the gateway has it. */
  readonly requestId: string | null
  /** The code of a refusal of the gateway's own. */
  readonly code: string | null
  /** To its end, broken off, or left by the caller. */
  readonly ending: 'complete' | 'cut' | 'left'
  /** The code of a `RUN_ERROR` event that ended it. */
  readonly runError: string | null
  /** What it held that is somebody else's. */
  readonly foreign: string | null
  /** What else was wrong with what it held, or the error of the connection. */
  readonly fault: string | null
  /** When the token ends that it was asked with; null without a good one. */
  readonly tokenEnds: number | null
}

/** Counts the tokens of a run from its event stream as it passes: by `usage` of its last event, or else by its text. */
import { frameEvents } from './frame-events.ts'
import { addTokens, type SeenEvent } from './run-events.ts'
import { textEvents } from './text-events.ts'

/** In tokens. */
export interface TokenCount {
  readonly reported: number
  readonly estimated: number
}

export interface RunMeter {
  see(chunk: Uint8Array): void
  end(): void
  /** Of all runs of the stream, so far; never 0 in all. */
  count(): TokenCount
  /** True once the stream has the last event of a run, and no further run has begun. */
  isRunOver(): boolean
}

/** A floor: texts in most languages have fewer bytes per token. */
const BYTES_PER_TOKEN = 4
/** A larger body has attachments as a rule, whose bytes are no tokens. */
const MOST_SENT_BYTES = 64 * 1024

function tokensOfText(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN)
}

/** For a run of which the gateway sees no event. */
export function tokensOfRequest(sent: number): number {
  return Math.max(1, tokensOfText(Math.min(sent, MOST_SENT_BYTES)))
}

/**
 * @param form null for an answer whose events the gateway cannot read
 * @param sent the bytes of the request's body, which is the input of the first run
 */
export function makeRunMeter(form: 'events' | 'frames' | null, sent: number): RunMeter {
  let before: TokenCount = { reported: 0, estimated: 0 }
  /** Of the run under way. */
  let text = Math.min(sent, MOST_SENT_BYTES)
  let usage = 0
  let isRunOver = false

  const current = (pending: number): TokenCount =>
    usage > 0 ? { reported: usage, estimated: 0 } : { reported: 0, estimated: tokensOfText(text + pending) }
  const take = (event: SeenEvent): void => {
    text += event.text
    if (event.kind === 'run-over') {
      isRunOver = true
      // An agent that sends the last event twice has run once.
      usage = Math.max(usage, event.usage)
    } else if (event.kind === 'run-started' && isRunOver) {
      before = sum(before, current(0))
      text = 0
      usage = 0
      isRunOver = false
    }
  }
  const scanner = form === null ? null : form === 'events' ? textEvents(take) : frameEvents(take)
  return {
    see: (chunk) => scanner?.see(chunk),
    end: () => scanner?.end(),
    count() {
      const { reported, estimated } = sum(before, current(scanner?.underWay() ?? 0))
      return { reported, estimated: reported + estimated === 0 ? 1 : estimated }
    },
    isRunOver: () => isRunOver,
  }
}

function sum(one: TokenCount, other: TokenCount): TokenCount {
  return {
    reported: addTokens(one.reported, other.reported),
    estimated: addTokens(one.estimated, other.estimated),
  }
}

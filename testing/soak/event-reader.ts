/** Reads an event stream of the soak's upstream, which numbers its events and says in each which thread and run it is of. */
import type { Answer } from './answer.ts'

interface Event {
  readonly type: string
  readonly threadId?: string
  readonly runId?: string
  readonly n?: number
  readonly code?: string
}

/** What is known of a stream so far. */
export type StreamState = Pick<Answer, 'runError' | 'foreign' | 'fault'>

/** It. */
export class EventReader {
  /** Events of the upstream that have come. */
  count = 0
  readonly #wanted: { readonly threadId?: string; readonly runId?: string }
  readonly #decoder = new TextDecoder()
  #held = ''
  #isFinished = false
  #state: StreamState = { runError: null, foreign: null, fault: null }

  /** @param wanted of which every event has to be */
  constructor(wanted: { readonly threadId?: string; readonly runId?: string }) {
    this.#wanted = wanted
  }

  /** Takes what has come. */
  take(bytes: Uint8Array): StreamState {
    this.#held += this.#decoder.decode(bytes, { stream: true })
    for (let end = this.#held.indexOf('\n\n'); end >= 0; end = this.#held.indexOf('\n\n')) {
      this.#event(this.#held.slice(0, end))
      this.#held = this.#held.slice(end + 2)
    }
    return this.#state
  }

  /** It has ended, and not been broken off: it has to be whole, unless the gateway has said why not. */
  end(): StreamState {
    if (this.#state.runError === null && !this.#isFinished) this.#fault(`ended after ${this.count} events as if it were whole`)
    if (this.#held !== '') this.#fault(`ended within an event: ${this.#held.slice(0, 100)}`)
    return this.#state
  }

  #event(text: string): void {
    if (text === '' || text.startsWith(':')) return
    if (!text.startsWith('data: ')) return this.#fault(`no event: ${text.slice(0, 100)}`)
    let event: Event
    try {
      event = JSON.parse(text.slice('data: '.length)) as Event
    } catch {
      return this.#fault(`no JSON: ${text.slice(0, 100)}`)
    }
    const { type, threadId, runId, n, code } = event
    if (type === 'RUN_ERROR') {
      this.#state = { ...this.#state, runError: code ?? '' }
      return
    }
    const { threadId: ofThread, runId: ofRun } = this.#wanted
    if (threadId !== ofThread || runId !== ofRun) {
      this.#state = { ...this.#state, foreign: `event of ${threadId}, ${runId}, where ${ofThread}, ${ofRun} was asked for` }
    }
    if (n !== this.count) this.#fault(`event ${n} came where ${this.count} was due`)
    this.count += 1
    this.#isFinished = type === 'RUN_FINISHED'
  }

  #fault(what: string): void {
    if (this.#state.fault === null) this.#state = { ...this.#state, fault: what }
  }
}

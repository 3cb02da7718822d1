/** Signals that a caller has disconnected. */

/** An AbortSignal fits wherever this type is required. */
export interface ClientDisconnect {
  readonly aborted: boolean
  addEventListener(type: 'abort', listener: () => void): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/** An AbortController costs more than many a request's decision. */
export class ClientDisconnectSignal implements ClientDisconnect {
  aborted = false
  readonly #listeners: (() => void)[] = []

  abort(): void {
    this.aborted = true
    for (const listener of this.#listeners.splice(0)) listener()
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.push(listener)
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    const at = this.#listeners.indexOf(listener)
    if (at !== -1) this.#listeners.splice(at, 1)
  }
}

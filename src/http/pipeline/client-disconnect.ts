/** Client-disconnect signal. */

/** As much of an AbortSignal as is made use of: one does wherever this is wanted. */
export interface ClientDisconnect {
  /** True once they have left. */
  readonly aborted: boolean
  addEventListener(type: 'abort', listener: () => void): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/** That of one caller. There is one for each request, and an AbortController costs more than many a request's decision. */
export class ClientDisconnectSignal implements ClientDisconnect {
  aborted = false
  readonly #listeners: (() => void)[] = []

  /** The caller has left: tells everybody who wants to know, once. */
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

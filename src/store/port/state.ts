/** Whether the store can be used. */

/** The store did not answer, so the request is denied. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable'
}

export interface StoreState {
  isEmpty(scope: string): Promise<boolean>
  /** 32 secret bytes that all processes on this store share, created at first use. */
  secret(): Promise<Uint8Array>
  /** Checks reads and writes now. Returns null, or the problem for an operator, without secrets. */
  fault(): Promise<string | null>
  close(): Promise<void>
}

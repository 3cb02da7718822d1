/** Whether the store can be used. */

/** The store did not answer: nothing is known, so nothing is allowed. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable'
}

export interface StoreState {
  isEmpty(scope: string): Promise<boolean>
  /** A secret of 32 bytes that all processes on this store share, made at first use. */
  secret(): Promise<Uint8Array>
  /**
   * Checks whether the store can be read and written now.
   * @returns null, or the problem in words for an operator, without anything secret
   */
  fault(): Promise<string | null>
  close(): Promise<void>
}

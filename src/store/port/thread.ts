/** How the store names threads and owners. Ids compare byte for byte in every store. */

export interface ThreadKey {
  /** The key of the thread's upstream, or `''` for `upstream`. */
  readonly scope: string
  readonly threadId: string
}

/** The owner of a row without one. It is no user's id: the thread is foreign to every user until it is assigned. */
export const NOBODY = ''

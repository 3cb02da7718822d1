/** A line of a file, its fields told apart and nothing of it understood yet. */

/** A line: its fields, or why it has none. */
export type SourceLine<C extends string> =
  /** `line` is 1-based. */
  | { readonly line: number; readonly fields: Readonly<Partial<Record<C, unknown>>> }
  | { readonly line: number; readonly fault: string }

/** A source that can't be read to its end: nothing of it is taken. The message is for an operator. */
export class SourceFault extends Error {
  override readonly name = 'SourceFault'
}

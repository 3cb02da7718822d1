/** A line of a file, split into fields that are not interpreted yet. */

export type SourceLine<C extends string> =
  /** `line` is 1-based. */
  | { readonly line: number; readonly fields: Readonly<Partial<Record<C, unknown>>> }
  | { readonly line: number; readonly fault: string }

/** A source that cannot be read to its end: nothing of it is taken over. The message is for an operator. */
export class SourceFault extends Error {
  override readonly name = 'SourceFault'
}

/** An error in a file that an operator wrote: where, what, and how to correct it. */
export interface Fault {
  readonly file: string
  /** 1-based line, where it is known. */
  readonly line?: number
  /** Dotted path of the key, `''` for the file as a whole. */
  readonly path: string
  readonly message: string
  readonly hint?: string
}

export function faultLine(fault: Fault): string {
  const place = fault.line === undefined ? fault.file : `${fault.file}:${fault.line}`
  const path = fault.path === '' ? '' : ` ${fault.path}:`
  return `${place}:${path} ${fault.message}${fault.hint === undefined ? '' : ` (${fault.hint})`}`
}

/** In the order of files as they were read, and of lines within each; errors without a line come last. */
export function inOrder(faults: readonly Fault[]): readonly Fault[] {
  const files = [...new Set(faults.map(({ file }) => file))]
  const lineOf = ({ line = Number.MAX_SAFE_INTEGER }: Fault): number => line
  return faults.toSorted((one, other) => files.indexOf(one.file) - files.indexOf(other.file) || lineOf(one) - lineOf(other))
}

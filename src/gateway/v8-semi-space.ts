/** V8 semi-space size. In a small container it is so little that collecting them costs more than all else. */

/** Containers of at most so many bytes get 1 MiB for each half of it, larger ones 16 MiB (Node 24, measured). */
const SMALL_CONTAINER = 512 * 2 ** 20

/** What gives a small container as much as others have. The image sets it. */
export const ENOUGH_ROOM = '--max-semi-space-size=16'

/** What Node was started in, and with. */
export interface NodeSetting {
  /** What its container may take, in bytes; 0 or undefined where nothing bounds it. */
  readonly constrained: number | undefined
  /** Its own arguments, and NODE_OPTIONS. */
  readonly options: readonly string[]
}

/** What to do about it where there is too little room, or null. */
export function roomWarning({ constrained, options }: NodeSetting): string | null {
  if (constrained === undefined || constrained === 0 || constrained > SMALL_CONTAINER) return null
  if (options.some((option) => /--max[-_]semi[-_]space[-_]size/.test(option))) return null
  return `Node leaves new objects 1 MiB in so small a container, and a request costs three times the CPU: set NODE_OPTIONS=${ENOUGH_ROOM}`
}

/** V8 semi-space size. In a small container it is so small that collecting new objects costs more than all else. */

/** Containers of at most this many bytes get semi-spaces of 1 MiB each, larger ones 16 MiB (Node 24, measured). */
const SMALL_CONTAINER = 512 * 2 ** 20

/** Gives a small container the semi-space of a larger one. The image sets it. */
export const ENOUGH_ROOM = '--max-semi-space-size=16'

export interface NodeSetting {
  /** The container's memory limit in bytes; 0 or undefined without a limit. */
  readonly constrained: number | undefined
  readonly options: readonly string[]
}

export function roomWarning({ constrained, options }: NodeSetting): string | null {
  if (constrained === undefined || constrained === 0 || constrained > SMALL_CONTAINER) return null
  if (options.some((option) => /--max[-_]semi[-_]space[-_]size/.test(option))) return null
  return `Node leaves new objects 1 MiB in so small a container, and a request costs three times the CPU: set NODE_OPTIONS=${ENOUGH_ROOM}`
}

/** Tracks whether a stream of server-sent events is between two events, where a comment may be added (HTML Standard §9.2.5). */
export interface EventBoundary {
  see(chunk: Uint8Array): void
  between(): boolean
}

// The ends of an event, with their bytes as a number: LF LF, CR CR, CR LF CR LF.
const LF_LF = 0x0a0a
const CR_CR = 0x0d0d
const CR_LF_CR_LF = 0x0d0a0d0a

export function eventBoundary(): EventBoundary {
  /** The last four bytes, the latest in the lowest position. */
  let last = 0
  let begun = false
  return {
    see(chunk) {
      for (let at = Math.max(0, chunk.length - 4); at < chunk.length; at += 1) last = (last << 8) | (chunk[at] as number)
      begun ||= chunk.length > 0
    },
    between() {
      const lastTwo = last & 0xffff
      return !begun || lastTwo === LF_LF || lastTwo === CR_CR || last === CR_LF_CR_LF
    },
  }
}

/** @returns a formatter of milliseconds since the epoch as ISO 8601, UTC; it formats one millisecond once for many lines */
export function makeIsoTime(): (time: number) => string {
  let last = Number.NaN
  let text = ''
  return (time) => {
    if (time !== last) {
      last = time
      text = new Date(time).toISOString()
    }
    return text
  }
}

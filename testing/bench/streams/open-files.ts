/** How many files streams take: a system that allows fewer would cut them, and the proxy would look as if it did. */

/** What a proxy opens besides a connection on either side of each stream. */
const OTHER_FILES = 300

/**
 * Looks whether there are enough.
 * @param streams that are to be open
 * @param most how many files a process may have open; null where nobody knows
 * @returns what is wrong, and what to do about it, or null
 */
export function tooFewFiles(streams: number, most: number | null): string | null {
  const wanted = 2 * streams + OTHER_FILES
  if (most === null || most >= wanted) return null
  return `${streams} streams take ${wanted} open files, and a process may have ${most} here: raise it (ulimit -Hn), or give --streams`
}

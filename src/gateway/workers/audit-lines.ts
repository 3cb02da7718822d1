/** The audit of a worker: the primary is the only writer, so that one file has all lines whole. Sends one batch at a time. */
import type { Audit } from '../../audit/sinks.ts'
import type { PrimaryHandlers } from './messages.ts'

/** Characters of lines that wait for the primary: beyond this, lines are lost. */
const MOST_WAITING = 8 * 1024 * 1024
/** Milliseconds that a primary that does not take the last lines may delay the end of the process. */
const LONGEST_END = 2000

/** @param send gives lines to the primary; resolves when it has them */
export function auditLines(send: (lines: Parameters<PrimaryHandlers['audit']>[0]) => Promise<void>): Audit {
  let waiting: string[] = []
  let size = 0
  let lost = 0
  let sending: Promise<void> | null = null

  const sendAll = async (): Promise<void> => {
    await new Promise(setImmediate)
    while (waiting.length > 0 || lost > 0) {
      const batch = { text: waiting.join(''), lost }
      waiting = []
      size = 0
      lost = 0
      await send(batch)
    }
  }
  const begin = (): void => {
    // A primary that takes no lines is gone, and this process ends with it.
    sending ??= sendAll()
      .catch(() => {})
      .finally(() => (sending = null))
  }
  return {
    isOn: true,
    write(line) {
      if (size + line.length > MOST_WAITING) lost += 1
      else {
        waiting.push(line)
        size += line.length
      }
      begin()
    },
    // Only the primary has the file.
    reopen() {},
    async stop() {
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, LONGEST_END)))
      await Promise.race([sending, late])
      clearTimeout(timer)
    },
  }
}

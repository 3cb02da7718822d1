/**
 * The audit of a worker: its lines go to the primary, which alone writes, so that one file has them all, each of them whole. They
 * are sent together, and the next ones when the primary has those before.
 */
import type { Audit } from '../../audit/sinks.ts'
import type { PrimaryHandlers } from './messages.ts'

/** Lines that wait for the primary: beyond this they are lost, in characters. */
const MOST_WAITING = 8 * 1024 * 1024
/** What a primary that does not take the last lines may take of the end of the process, in milliseconds. */
const LONGEST_END = 2000

/** @param send gives lines to the primary; resolves when it has them */
export function auditLines(isOn: boolean, send: (lines: Parameters<PrimaryHandlers['audit']>[0]) => Promise<void>): Audit {
  let waiting: string[] = []
  let size = 0
  let lost = 0
  let sending: Promise<void> | null = null

  const sendAll = async (): Promise<void> => {
    // More come in the same moment: they go together.
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
    // A primary that takes nothing any more is gone, and with it this process.
    sending ??= sendAll()
      .catch(() => {})
      .finally(() => (sending = null))
  }
  return {
    isOn,
    write(line) {
      const text = `${JSON.stringify(line)}\n`
      if (size + text.length > MOST_WAITING) lost += 1
      else {
        waiting.push(text)
        size += text.length
      }
      begin()
    },
    async stop() {
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, LONGEST_END)))
      await Promise.race([sending, late])
      clearTimeout(timer)
    },
  }
}

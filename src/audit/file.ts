/**
 * Audit lines in files that are put aside when they have grown: `audit.jsonl` is written as `audit.1.jsonl`, `audit.2.jsonl`
 * and so on, the highest number last. A line counts as written when the operating system has taken it, and is held until then.
 */
import { writeSync } from 'node:fs'
import type { RollingFile } from 'pino-roll'
import type { LineSink, Outage } from './outage.ts'
import { isCut, isGone, openRollingFile, type AuditFileRules, type FileError } from './rolling-file.ts'

/** Lines that wait for a file that fails: beyond this they are lost, in bytes. */
const MOST_WAITING = 8 * 1024 * 1024
/** How often a file that fails is tried again, and one that doesn't is looked at, in milliseconds. */
const LOOK_EVERY = 1000
/** What a file that does not close may take of the end of the process, in milliseconds. */
const LONGEST_END = 2000
/**
 * Opens the file.
 * @param written told of lines that the operating system has taken
 * @throws Error that names the path and what to do
 */
export async function openAuditFile(rules: AuditFileRules, outage: Outage, written: (lines: number) => void): Promise<LineSink> {
  /** In the order in which they came; of the first, so many bytes are in the file. */
  const waiting: Buffer[] = []
  let waitingBytes = 0
  let bytesOfFirst = 0
  /** What stands before the next line: an end for one that was cut. */
  let before = ''
  /** Written since the file was last seen to be there. */
  let unseen = 0
  let stream: RollingFile | null = null
  let stopped = false
  let onSettled = (): void => {}

  const confirm = (bytes: number): void => {
    bytesOfFirst += bytes
    let lines = 0
    for (let first = waiting[0]; first !== undefined && bytesOfFirst >= first.length; first = waiting[0]) {
      bytesOfFirst -= first.length
      waitingBytes -= first.length
      waiting.shift()
      lines += 1
    }
    unseen += lines
    written(lines)
    if (waiting.length === 0) onSettled()
  }

  /** Goes on without the stream, which is to close as `close` says. */
  const leave = (detail: string, close: (stream: RollingFile) => void): void => {
    outage.began(detail)
    const left = stream
    stream = null
    left?.removeListener('write', confirm)
    if (left !== null) close(left)
    onSettled()
  }

  const send = (line: string): void => {
    const text = before + line
    const bytes = Buffer.from(text)
    waiting.push(bytes)
    waitingBytes += bytes.length
    if (stream === null) return
    before = ''
    stream.write(text)
  }

  /** Writes to a new stream whatever waits; what was cut begins anew, in a line of its own. */
  const use = (next: RollingFile): void => {
    before = isCut(next.file) ? '\n' : ''
    stream = next
    next.on('write', confirm)
    bytesOfFirst = 0
    waitingBytes = 0
    for (const line of waiting.splice(0)) send(line.toString().trimStart())
  }

  const open = async (): Promise<void> => {
    const next = await openRollingFile(rules, (failed, error) => {
      // Nothing is under way on a stream that has just said this: its descriptor can be closed.
      if (failed === stream) leave(error.code ?? error.message, (broken) => broken.destroy())
    })
    use(next)
  }

  /** Tries again what failed; finds out whether what is written still goes to a file that anybody can find. */
  const look = async (): Promise<void> => {
    if (stream !== null && isGone(stream)) {
      leave('the file is gone', (left) => left.end())
      outage.lost(unseen)
      unseen = 0
    }
    if (stream === null) return open().catch(() => {})
    unseen = 0
    if (waiting.length === 0) outage.over()
  }

  try {
    await open()
  } catch (error) {
    const { code = 'unknown' } = error as FileError
    throw new Error(
      `the audit file ${rules.file} cannot be opened (${code}): make its folder one that the gateway may write to, or set audit.file or audit.to`,
      { cause: error },
    )
  }
  let looking = Promise.resolve()
  const timer = setInterval(() => {
    looking = looking.then(() => (stopped ? undefined : look()))
  }, LOOK_EVERY)
  timer.unref()
  const atExit = (): void => writeAtExit(stream, waiting, bytesOfFirst)
  process.on('exit', atExit)

  return {
    write(line) {
      if (!stopped && waitingBytes + line.length <= MOST_WAITING) send(line)
      else {
        outage.began('too many lines wait')
        outage.lost(1)
      }
    },
    async stop() {
      stopped = true
      clearInterval(timer)
      await looking
      if (stream === null && waiting.length > 0) await open().catch(() => {})
      await within(LONGEST_END, (resolve) => {
        onSettled = resolve
        if (waiting.length === 0 || stream === null) resolve()
      })
      process.removeListener('exit', atExit)
      if (waiting.length > 0) outage.ended(waiting.splice(0).length)
      const last = stream
      stream = null
      if (last === null) return
      await within(LONGEST_END, (resolve) => {
        last.once('close', resolve)
        last.end()
      })
    },
  }
}

/** The last chance of a process that dies of an error: a line that was on its way may stand there twice. */
function writeAtExit(stream: RollingFile | null, waiting: readonly Buffer[], bytesOfFirst: number): void {
  if (stream === null || waiting.length === 0) return
  try {
    const cut = bytesOfFirst > 0 ? [Buffer.from('\n')] : []
    writeSync(stream.fd, Buffer.concat([...cut, ...waiting]))
  } catch {
    // The process is over: there is nobody left to tell.
  }
}

/** Waits for something, but not for ever. */
async function within(milliseconds: number, begin: (resolve: () => void) => void): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  await new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds)
    begin(resolve)
  })
  clearTimeout(timer)
}

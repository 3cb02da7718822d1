/**
 * Writes audit lines to files that roll when they have grown: `audit.jsonl` is written as `audit.1.jsonl`, `audit.2.jsonl` and so
 * on, the highest number last. A line counts as written, and leaves memory, when the operating system has taken it.
 */
import { writeSync } from 'node:fs'
import type { RollingFile } from 'pino-roll'
import type { LineSink, Outage } from './outage.ts'
import { isCut, isGone, openRollingFile, type AuditFileRules, type FileError } from './rolling-file.ts'

/** Bytes of lines that wait for a failing file: beyond this, lines are lost. */
const MOST_WAITING = 8 * 1024 * 1024
/** Milliseconds between retries of a failing file, and between checks of a working one. */
const LOOK_EVERY = 1000
/** Milliseconds that a file that does not close may delay the end of the process. */
const LONGEST_END = 2000
/**
 * @param written gets the number of lines that the operating system has taken
 * @throws Error that names the path and what to do
 */
export async function openAuditFile(rules: AuditFileRules, outage: Outage, written: (lines: number) => void): Promise<LineSink> {
  /** Lines in order of arrival; of the first, `bytesOfFirst` bytes are already in the file. */
  const waiting: Buffer[] = []
  let waitingBytes = 0
  let bytesOfFirst = 0
  /** Written before the next line: a line end if the last line was cut. */
  let before = ''
  /** Lines written since the file was last found in its place. */
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

  /** Writes all waiting lines to a new stream; a cut line is written again, as a line of its own. */
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
      // No write is under way on a stream that has just failed: its descriptor can be closed.
      if (failed === stream) leave(error.code ?? error.message, (broken) => broken.destroy())
    })
    use(next)
  }

  /** Retries a failed file; checks that a working file can still be found by its name. */
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

/** The last attempt of a process that ends by an error: a line that was being written may appear twice. */
function writeAtExit(stream: RollingFile | null, waiting: readonly Buffer[], bytesOfFirst: number): void {
  if (stream === null || waiting.length === 0) return
  try {
    const cut = bytesOfFirst > 0 ? [Buffer.from('\n')] : []
    writeSync(stream.fd, Buffer.concat([...cut, ...waiting]))
  } catch {
    // The process ends: no log can report this any more.
  }
}

async function within(milliseconds: number, begin: (resolve: () => void) => void): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  await new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds)
    begin(resolve)
  })
  clearTimeout(timer)
}

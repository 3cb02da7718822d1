/** Appends audit lines to a file and reopens it after log rotation. A line leaves memory once the operating system has it. */
import fs from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { GATHERING_MS, MOST_GATHERED, type Logger } from '../observe/log.ts'
import type { LineSink, Outage } from './outage.ts'

type FileError = Error & { readonly code?: string }

/** Bytes of lines that wait for a failing file: beyond this, lines are lost. */
const MAX_WAITING = 8 * 1024 * 1024
/** Milliseconds between retries of a failing file, and between checks of a working one. */
const CHECK_EVERY_MS = 1000
/** Milliseconds that a file that takes no lines may delay the end of the process. */
const MAX_STOP_MS = 2000
/** Bytes of a file that is hardly meant to be so large: nothing seems to rotate it. */
const LARGE = 2 ** 30
/** The lines are about people: only the owner and the group, for log collectors, may read them. */
const MODE = 0o640

export interface AuditFileParts {
  readonly outage: Outage
  readonly log: Logger
  /** Gets the number of lines that the operating system has taken. */
  readonly onWritten: (lines: number) => void
}

/** @throws Error that names the path and what to do */
export function openAuditFile(file: string, { outage, log, onWritten }: AuditFileParts): LineSink {
  const waiting: string[] = []
  let waitingBytes = 0
  /** Pending while a write may wait for more lines. */
  let gathering: NodeJS.Timeout | undefined
  let unchecked = 0
  let fd: number | null = null
  let isSound = true
  let isLarge = false
  let isCheckDue = false
  /** `again`: an attempt has failed, and the failure was reported. */
  let reopening: 'no' | 'now' | 'again' = 'no'
  let isWriting = false
  let written: Promise<void> = Promise.resolve()
  let isStopped = false

  const open = (): number => {
    fs.mkdirSync(dirname(file), { recursive: true })
    const opened = fs.openSync(file, 'a+', MODE)
    if (isCut(opened)) fs.writeSync(opened, '\n')
    return opened
  }

  const close = (): void => {
    if (fd !== null) fs.close(fd, () => {})
    fd = null
  }

  const fail = (detail: string): void => {
    isSound = false
    outage.began(detail)
    close()
  }

  /** After a failure, or for log rotation. Until it succeeds, a file that is still open takes the lines. */
  const openAgain = (): void => {
    try {
      const next = open()
      close()
      fd = next
      if (reopening !== 'no') log.info({ file }, 'the audit file was reopened')
      reopening = 'no'
    } catch (error) {
      if (fd === null) outage.began(codeOf(error))
      else if (reopening === 'now') log.error({ file, detail: codeOf(error) }, REOPEN_FAILED)
      reopening = 'again'
    }
  }

  const check = (): void => {
    isCheckDue = false
    const { nlink, size } = fd === null ? { nlink: 0, size: 0 } : fs.fstatSync(fd)
    if (size > LARGE && !isLarge) log.warn({ file, bytes: size }, TOO_LARGE)
    isLarge = size > LARGE
    if (fd !== null && nlink === 0) {
      fail('the file is gone')
      outage.lost(unchecked)
    } else if (fd !== null && (isSound || waiting.length === 0)) outage.over()
    unchecked = 0
    if (fd === null || reopening !== 'no') openAgain()
  }

  /** @returns how many waiting lines are whole in so many bytes, and how many bytes of the next line follow */
  const wholeIn = (bytes: number): { readonly lines: number; readonly left: number } => {
    let left = bytes
    let lines = 0
    for (const line of waiting) {
      const length = Buffer.byteLength(line)
      if (left < length) break
      left -= length
      lines += 1
    }
    return { lines, left }
  }

  /** Removes lines that the operating system has from memory. */
  const settle = (lines: number, bytes: number): void => {
    // After a stop that came too early for a slow write, its lines are already counted as lost.
    const { length } = waiting.splice(0, lines)
    waitingBytes -= bytes
    unchecked += length
    onWritten(length)
  }

  const writeAll = async (): Promise<void> => {
    isWriting = true
    for (;;) {
      // Only between whole batches: no line is split between two files.
      if (isCheckDue || reopening === 'now') check()
      if (fd === null || waiting.length === 0 || gathering !== undefined) break
      const lines = waiting.length
      const batch = Buffer.from(waiting.join(''))
      let done = 0
      try {
        while (done < batch.length) done += await write(fd, batch.subarray(done))
        isSound = true
      } catch (error) {
        fail(codeOf(error))
      }
      const whole = done === batch.length ? { lines, left: 0 } : wholeIn(done)
      settle(whole.lines, done - whole.left)
    }
    isWriting = false
  }

  const begin = (): void => {
    clearTimeout(gathering)
    gathering = undefined
    if (!isWriting) written = writeAll()
  }

  try {
    fd = open()
  } catch (error) {
    throw new Error(
      `the audit file ${file} cannot be opened (${codeOf(error)}): let the gateway write to it and its folder, or set audit.file or audit.to`,
      { cause: error },
    )
  }
  const timer = setInterval(() => {
    isCheckDue = true
    begin()
  }, CHECK_EVERY_MS)
  timer.unref()
  /** The last attempt of a process that ends by an error: a line that was being written may appear twice. */
  const atExit = (): void => {
    if (fd === null || waiting.length === 0) return
    try {
      fs.writeSync(fd, Buffer.from(`${isCut(fd) ? '\n' : ''}${waiting.join('')}`))
    } catch {
      // The process ends: no log can report this any more.
    }
  }
  process.on('exit', atExit)

  return {
    write(line) {
      const length = Buffer.byteLength(line)
      if (isStopped || waitingBytes + length > MAX_WAITING) {
        outage.began('too many lines wait')
        outage.lost(1)
        return
      }
      waiting.push(line)
      waitingBytes += length
      if (waitingBytes >= MOST_GATHERED) begin()
      else gathering ??= setTimeout(begin, GATHERING_MS)
    },
    reopen() {
      reopening = 'now'
      begin()
    },
    async stop() {
      isStopped = true
      clearInterval(timer)
      isCheckDue = fd === null && waiting.length > 0
      begin()
      const timeout = new AbortController()
      await Promise.race([written, sleep(MAX_STOP_MS, undefined, { signal: timeout.signal }).catch(() => {})])
      timeout.abort()
      process.removeListener('exit', atExit)
      if (waiting.length > 0) outage.ended(waiting.splice(0).length)
      close()
    },
  }
}

const TOO_LARGE =
  'the audit file is larger than 1 GiB, and grows until it is rotated: see docs/how-to/operate/audit.md#rotate-the-file'

const REOPEN_FAILED =
  'the audit file cannot be reopened: lines go to the file that was open before, and the gateway tries again every second'

function write(fd: number, bytes: Uint8Array): Promise<number> {
  return new Promise((resolve, reject) => {
    fs.write(fd, bytes, (error, count) => (error === null ? resolve(count) : reject(error)))
  })
}

/** True if the last line has no line end: its writer was stopped in the middle. */
function isCut(fd: number): boolean {
  const { size } = fs.fstatSync(fd)
  const last = Buffer.alloc(1)
  return size > 0 && fs.readSync(fd, last, 0, 1, size - 1) === 1 && last[0] !== 0x0a
}

function codeOf(error: unknown): string {
  const { code, message } = error as FileError
  return code ?? message
}

/** Checks the path without writing. @returns the problem and what to do, or null */
export function auditFileFault(file: string): { readonly message: string; readonly hint: string } | null {
  const hint = 'name a file that the gateway may write to, in a folder that it may write to'
  for (let path = file; ; path = dirname(path)) {
    try {
      const isFolder = fs.statSync(path).isDirectory()
      if (isFolder === (path === file)) return { message: `${path} is ${isFolder ? 'a' : 'no'} folder`, hint }
      fs.accessSync(path, fs.constants.W_OK | (isFolder ? fs.constants.X_OK : fs.constants.R_OK))
      return null
    } catch (error) {
      const code = codeOf(error)
      // The gateway creates missing folders.
      if (code === 'ENOENT' && path !== dirname(path)) continue
      // With other errors the path itself is invalid: its checked part says no more than the whole.
      const named = ['EACCES', 'EROFS', 'ENOTDIR'].includes(code) ? path : file
      return { message: `${named} cannot be written to (${code})`, hint }
    }
  }
}

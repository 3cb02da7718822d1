/** The log: JSON lines on stdout. Tokens, cookies and secrets are never handed to it; ids of users and threads are. */
import { writeSync } from 'node:fs'
import { isatty } from 'node:tty'
import { pino, type DestinationStream, type Logger } from 'pino'
import { terminalJson } from '../core/json/terminal-json.ts'

export type { Logger } from 'pino'

/**
 * Makes the log.
 * @param level the least level that is written
 * @param destination where the lines go, by default stdout
 */
export function makeLog(level: string, destination?: DestinationStream): Logger {
  const options = {
    level,
    base: null,
    timestamp: makeTimestamp(),
    formatters: { level: (label: string) => ({ level: label }) },
  }
  return pino(options, destination ?? stdout())
}

/** The time in the form of RFC 3339; lines of one millisecond share its text. */
function makeTimestamp(): () => string {
  let millisecond = 0
  let text = ''
  return () => {
    const now = Date.now()
    if (now !== millisecond) {
      millisecond = now
      text = `,"time":"${new Date(now).toISOString()}"`
    }
    return text
  }
}

/** How much is held of what can't be written: beyond that it is lost, and the gateway goes on. */
const MOST_HELD = 8 * 1024 * 1024

/** How much is gathered before it is written all the same, in bytes; and for how long, in milliseconds. */
const MOST_GATHERED = 128 * 1024
const GATHERING_MS = 25

/**
 * Standard output; a full disk behind it takes the lines, and not the gateway. Lines are gathered for a
 * moment and written together: a write for each would cost more than all else about a line.
 */
function stdout(most = MOST_GATHERED): DestinationStream & Pick<NodeJS.EventEmitter, 'on'> {
  const stream = pino.destination({ dest: 1, maxLength: MOST_HELD, maxWrite: most })
  let failing = false
  // Without a listener of its own an error would end the process.
  stream.on('error', () => (failing = true))
  stream.on('write', () => (failing = false))
  const flush = stream.flushSync.bind(stream)
  // At the end of the process it would try again for ever.
  stream.flushSync = () => {
    if (!failing) flush()
  }
  const isTerminal = isatty(1)
  let gathered = ''
  let bytes = 0
  let pause: NodeJS.Timeout | undefined
  const write = (): void => {
    clearTimeout(pause)
    pause = undefined
    if (gathered === '') return
    const lines = gathered
    gathered = ''
    bytes = 0
    stream.write(lines)
  }
  // The stream writes what it holds at the end, and is past that by now: what it took here would be written by nobody.
  process.once('exit', () => {
    if (!failing) writeLast(Buffer.from(gathered))
  })
  return {
    write(entry) {
      const line = isTerminal ? terminalJson(entry) : entry
      const length = Buffer.byteLength(line)
      if (bytes + length > most) write()
      gathered += line
      bytes += length
      pause ??= setTimeout(write, GATHERING_MS)
    },
    on: (name: string, listener: (...values: unknown[]) => void) => stream.on(name, listener),
  }
}

/** How often a pipe that is full is tried at the end, and how long is waited in between, in milliseconds: two seconds in all. */
const LAST_TRIES = 200
const LAST_WAIT_MS = 10

/** Writes to standard output at once. What can't be written is lost. */
function writeLast(lines: Uint8Array): void {
  const asleep = new Int32Array(new SharedArrayBuffer(4))
  for (let at = 0, tries = 0; at < lines.length && tries < LAST_TRIES;) {
    try {
      at += writeSync(1, lines, at)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return
      tries += 1
      Atomics.wait(asleep, 0, 0, LAST_WAIT_MS)
    }
  }
}

/** What a pipe takes of one process without a word of another in between, in bytes (PIPE_BUF of Linux). */
const WHOLE = 4096

/** Standard output that other processes write to as well: lines of up to 4 KiB stay whole. */
export function sharedStdout(): DestinationStream {
  return stdout(WHOLE)
}

/** The stream that a log writes to, with its events where it has any. */
export function destinationOf(log: Logger): DestinationStream & Partial<Pick<NodeJS.EventEmitter, 'on'>> {
  return (log as unknown as Record<typeof pino.symbols.streamSym, DestinationStream>)[pino.symbols.streamSym]
}

/**
 * Makes what writes the line of each request, just as `log.info(fields, 'request')` does. pino puts a line together from some
 * fifty pieces; for the one line that comes with every request, JSON.stringify in one go is cheaper.
 */
export function requestLines(log: Logger): (fields: { readonly requestId: string }) => void {
  const stream = destinationOf(log)
  // It asks pino for more than the text: the level, which a stream of several is chosen by.
  if (Reflect.get(stream, pino.symbols.needsMetadataGsym) === true) return (fields) => log.info(fields, 'request')
  const time = makeTimestamp()
  const bound = JSON.stringify(log.bindings()).slice(1, -1)
  const own = bound === '' ? '' : `,${bound}`
  return (fields) => {
    if (!log.isLevelEnabled('info')) return
    stream.write(`{"level":"info"${time()}${own},${JSON.stringify(fields).slice(1, -1)},"msg":"request"}\n`)
  }
}

/** Says each of a bounded number of names once: callers choose the names, so they may not fill the log. */
export function onceByName(say: (name: string) => void, most = 200): (name: string) => void {
  const said = new Set<string>()
  return (name) => {
    if (said.size >= most) return
    // A copy: a part of a long text would keep all of it in memory.
    const short = Buffer.from(name.slice(0, 100)).toString()
    if (said.has(short)) return
    said.add(short)
    say(short)
  }
}

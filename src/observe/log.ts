/** The log: JSON lines on stdout. It never gets tokens, cookies and secrets; it does get ids of users and threads. */
import { fstatSync, writeSync } from 'node:fs'
import { isatty, WriteStream } from 'node:tty'
import { pino, type DestinationStream, type Logger } from 'pino'
import { terminalJson } from '../core/json/terminal-json.ts'
import { makeIsoTime } from './iso-time.ts'
import { prettyLine } from './pretty.ts'

export type { Logger } from 'pino'

/** `pretty`: for people; `json`: for programs. */
export type LogForm = 'json' | 'pretty'

export function makeLog(level: string, destination?: DestinationStream): Logger {
  const options = {
    level,
    base: null,
    timestamp: makeTimestamp(),
    formatters: { level: (label: string) => ({ level: label }) },
  }
  return pino(options, destination ?? ownStdout())
}

function makeTimestamp(): () => string {
  const isoTime = makeIsoTime()
  return () => `,"time":"${isoTime(Date.now())}"`
}

/** Most bytes held of unwritable lines: beyond this they are lost, and the gateway goes on. */
const MOST_HELD = 8 * 1024 * 1024

/** Lines, also those of the audit, are gathered up to this many bytes and milliseconds, then written. */
export const MOST_GATHERED = 128 * 1024
export const GATHERING_MS = 25

/** A full disk loses lines but does not stop the gateway. One write per line would cost more than all else about a line. */
function stdout(most: number, form: LogForm): DestinationStream & Pick<NodeJS.EventEmitter, 'on'> {
  const stream = pino.destination({ dest: 1, maxLength: MOST_HELD, maxWrite: most })
  let failing = false
  // Without a listener, an error would end the process.
  stream.on('error', () => (failing = true))
  stream.on('write', () => (failing = false))
  const flush = stream.flushSync.bind(stream)
  // At the end of the process, pino would retry without end.
  stream.flushSync = () => {
    if (!failing) flush()
  }
  const isTerminal = isatty(1)
  const colours = isTerminal && WriteStream.prototype.getColorDepth() > 2 ? 'colours' : 'plain'
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
  // By now the stream has written what it held at exit: it would never write the lines gathered here.
  process.once('exit', () => {
    if (!failing) writeLast(Buffer.from(gathered))
  })
  return {
    write(entry) {
      const line = form === 'pretty' ? prettyLine(entry, colours) : isTerminal ? terminalJson(entry) : entry
      const length = Buffer.byteLength(line)
      if (bytes + length > most) write()
      gathered += line
      bytes += length
      pause ??= setTimeout(write, GATHERING_MS)
    },
    on: (name: string, listener: (...values: unknown[]) => void) => stream.on(name, listener),
  }
}

/** Attempts on a full pipe at exit, and the wait between them, in milliseconds: two seconds in all. */
const LAST_TRIES = 200
const LAST_WAIT_MS = 10

/** What can't be written is lost. */
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

/** Bytes that a pipe takes from one process without mixing in another's (PIPE_BUF of Linux). */
const WHOLE = 4096

/** Standard output that other processes write to as well: lines of up to 4 KiB stay whole, and all lines in a file with room. */
export function sharedStdout(form: LogForm = 'json'): DestinationStream {
  // The processes share one open file, whose position Linux locks for the time of a write: so a write is whole, however long it is.
  return stdout(fstatSync(1).isFile() ? MOST_GATHERED : WHOLE, form)
}

export function ownStdout(form: LogForm = 'json'): DestinationStream {
  return stdout(MOST_GATHERED, form)
}

export function destinationOf(log: Logger): DestinationStream & Partial<Pick<NodeJS.EventEmitter, 'on'>> {
  // pino documents the symbol, but has no type for its value.
  return Reflect.get(log, pino.symbols.streamSym) as DestinationStream
}

/** `warn` for a failure of the upstream or of a limit of the gateway, `error` for one of the gateway itself. */
export type RequestLevel = 'info' | 'warn' | 'error'

/** Same output as `log[level](fields, 'request')`. pino assembles a line from some fifty pieces; JSON.stringify is cheaper. */
export function requestLines(log: Logger): (fields: { readonly requestId: string }, level?: RequestLevel) => void {
  const stream = destinationOf(log)
  // Such a stream asks pino for more than the text: the level, by which a multistream chooses.
  if (Reflect.get(stream, pino.symbols.needsMetadataGsym) === true)
    return (fields, level = 'info') => log[level](fields, 'request')
  const time = makeTimestamp()
  const bound = JSON.stringify(log.bindings()).slice(1, -1)
  const own = bound === '' ? '' : `,${bound}`
  return (fields, level = 'info') => {
    if (!log.isLevelEnabled(level)) return
    stream.write(`{"level":"${level}"${time()}${own},${JSON.stringify(fields).slice(1, -1)},"msg":"request"}\n`)
  }
}

/** Reports each of a bounded number of names once: callers choose the names, so they must not fill the log. */
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

/** Sends the requests of the demo, prints each exchange as a line, and checks it. */
import { isDeepStrictEqual, styleText } from 'node:util'
import { EventType } from '@ag-ui/core'
import type { RuntimeRequest } from './runtime.ts'

/** One exchange: the request, the expected answer, and what it shows. */
export interface Line {
  readonly who: string
  readonly method: string
  /** Below the server's base URL. */
  readonly path: string
  readonly token?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly body?: unknown
  /** The expected status. */
  readonly status: number
  /** What else is expected: `seen` of the answer must equal `expected`. */
  readonly expected?: unknown
  readonly seen?: (answer: Answer) => unknown
  /** A short explanation. */
  readonly says: string | ((answer: Answer) => string)
  /** The expected text of a streamed answer, which is printed as it arrives. */
  readonly streams?: string
}

/** The answer. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  /** The parsed body; null for a stream and for anything but JSON. */
  readonly json: unknown
  /** The requests that reached the runtime because of this one. */
  readonly arrived: readonly RuntimeRequest[]
}

/** Numbers of exchanges with an expected and with an unexpected result. */
export interface Score {
  right: number
  wrong: number
}

export interface Exchanges {
  readonly heading: (text: string) => void
  readonly note: (text: string) => void
  /** Sends one request and prints the exchange. */
  readonly tell: (line: Line) => Promise<void>
  readonly score: Score
}

/** The longest stream of the demo takes less than a second. */
const TIMEOUT_MS = 30_000

const COLOUR = (process.stdout.isTTY && (process.env['NO_COLOR'] ?? '') === '') || (process.env['FORCE_COLOR'] ?? '') !== ''

/** Text in a style, if the terminal has colours. */
export function styled(style: 'bold' | 'dim' | 'green' | 'red' | 'yellow', text: string): string {
  return COLOUR ? styleText(style, text, { validateStream: false }) : text
}

/** The column of the explanations. */
const TEXT_COLUMN = 53

const RIGHT = styled('green', '✓')
const WRONG = styled('red', '✗')

/** Prints to stdout. */
export function print(text: string): void {
  process.stdout.write(text)
}

/**
 * Prepares exchanges with one server.
 * @param base the URL that paths are below
 * @param requests the runtime's record of what reached it
 * @param signal gives up an exchange when it fires
 * @param score where to count, shared by all exchanges of a demo
 */
export function makeExchanges(base: string, requests: readonly RuntimeRequest[], signal: AbortSignal, score: Score): Exchanges {
  return {
    score,
    heading: (text) => print(`\n${styled('bold', text)}\n`),
    note: (text) => print(`${styled('dim', text)}\n`),
    tell: async (line) => {
      const before = requests.length
      const response = await send(base, line, AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]))
      const streaming = line.streams !== undefined && (response.headers.get('content-type') ?? '').startsWith('text/event-stream')
      const json = streaming ? null : parsed(await response.text())
      const { status, headers } = response
      const answer: Answer = { status, headers, json, arrived: requests.slice(before).filter(isOurs) }
      const fault = faultOf(line, answer, streaming)
      print(row(line, answer, fault))
      const right = fault === undefined && (line.streams === undefined || (await followPieces(response, line.streams)))
      score[right ? 'right' : 'wrong'] += 1
    },
  }
}

/** The printed line; a fault replaces the explanation. */
function row({ who, method, path, says }: Line, answer: Answer, fault: string | undefined): string {
  const mark = fault === undefined ? RIGHT : WRONG
  const text = fault ?? (typeof says === 'string' ? says : says(answer))
  const where = path === '' ? '(base path)' : path
  return `${mark} ${who.padEnd(9)}${method.padEnd(8)}${where.padEnd(29)}${styled(answer.status < 400 ? 'green' : 'yellow', String(answer.status))}  ${text}\n`
}

function send(base: string, { method, path, token, headers, body }: Line, signal: AbortSignal): Promise<Response> {
  return fetch(`${base}${path}`, {
    method,
    headers: {
      ...headers,
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    redirect: 'manual',
    signal,
  })
}

/** Whether a request is not the gateway's own health check of the runtime. */
function isOurs({ method, url }: RuntimeRequest): boolean {
  return !(method === 'GET' && url.endsWith('/info'))
}

/** The difference from the expected answer; undefined if there is none. */
function faultOf(line: Line, answer: Answer, streaming: boolean): string | undefined {
  const seen = line.seen?.(answer)
  const right =
    answer.status === line.status && isDeepStrictEqual(seen, line.expected) && streaming === (line.streams !== undefined)
  if (right) return undefined
  const expected = [line.status, line.streams === undefined ? '' : 'a stream', show(line.expected)]
  const got = [answer.status, streaming ? 'a stream' : '', show(seen) || show(answer.json)]
  return styled('red', `expected ${expected.filter(Boolean).join(' ')}; got ${got.filter(Boolean).join(' ')}`)
}

function show(value: unknown): string {
  return value === undefined || value === null ? '' : JSON.stringify(value).slice(0, 300)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** Prints the text of an event stream as it arrives; true if it is the expected one. */
async function followPieces(response: Response, expected: string): Promise<boolean> {
  let whole = ''
  print(' '.repeat(TEXT_COLUMN))
  for await (const { type, delta = '' } of eventsOf(response)) {
    if (type !== EventType.TEXT_MESSAGE_CONTENT) continue
    print(`${whole === '' ? '' : styled('dim', '¦')}${delta}`)
    whole += delta
  }
  print('\n')
  if (whole !== expected) print(`${WRONG} ${styled('red', `expected the answer ${show(expected)}; got ${show(whole)}`)}\n`)
  return whole === expected
}

/** The events of a stream, without its keep-alive comments. */
async function* eventsOf(response: Response): AsyncGenerator<{ type?: string; delta?: string }> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    const frames = (rest + decoder.decode(chunk, { stream: true })).split('\n\n')
    rest = frames.pop() ?? ''
    for (const frame of frames) {
      if (frame.startsWith('data:')) yield JSON.parse(frame.slice('data:'.length)) as { type?: string; delta?: string }
    }
  }
}

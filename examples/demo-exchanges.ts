/** Makes the exchanges of the demo, prints each as a line, and checks it. */
import { isDeepStrictEqual, styleText } from 'node:util'
import { EventType } from '@ag-ui/core'
import type { RuntimeRequest } from './runtime.ts'

/** One exchange: what is asked, what is expected, and what the reader learns from it. */
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
  /** In a few plain words. */
  readonly says: string | ((answer: Answer) => string)
  /** The whole text of a stream, whose pieces are shown as they come. */
  readonly streams?: string
}

/** What came back. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  /** The parsed body; null for a stream and for what is no JSON. */
  readonly json: unknown
  /** The requests that reached the runtime because of this one. */
  readonly arrived: readonly RuntimeRequest[]
}

/** How many exchanges went as expected so far, and how many didn't. */
export interface Score {
  right: number
  wrong: number
}

export interface Exchanges {
  readonly heading: (text: string) => void
  readonly note: (text: string) => void
  /** Makes one exchange and prints it. */
  readonly tell: (line: Line) => Promise<void>
  readonly score: Score
}

/** The longest stream of the demo takes less than a second. */
const PATIENCE_MS = 30_000

const COLOUR = process.stdout.isTTY && (process.env['NO_COLOR'] ?? '') === ''

/** Text in a style, where that can be seen. */
export function styled(style: 'bold' | 'dim' | 'green' | 'red', text: string): string {
  return COLOUR ? styleText(style, text, { validateStream: false }) : text
}

/** The column where the words of a line begin; an answer's pieces stand under them. */
const WORDS_AT = 52

const RIGHT = styled('green', '✓')
const WRONG = styled('red', '✗')

/** Prints to stdout. */
export function print(text: string): void {
  process.stdout.write(text)
}

/**
 * Makes the exchanges with one server.
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
      const response = await send(base, line, AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)]))
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

/** The line in print; `fault` stands in place of what it would show. */
function row({ who, method, path, says }: Line, answer: Answer, fault: string | undefined): string {
  const mark = fault === undefined ? RIGHT : WRONG
  const words = fault ?? (typeof says === 'string' ? says : says(answer))
  return `${mark} ${who.padEnd(8)}${method.padEnd(8)}${path.padEnd(29)}${styled('bold', String(answer.status))}  ${words}\n`
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

/** Everything but the gateway's own look at whether the runtime is up. */
function isOurs({ method, url }: RuntimeRequest): boolean {
  return !(method === 'GET' && url.endsWith('/info'))
}

/** What is not as expected; undefined if all is. */
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

/** Prints the text in a stream of events piece by piece, as it comes; true if the whole is as expected. */
async function followPieces(response: Response, expected: string): Promise<boolean> {
  let whole = ''
  print(' '.repeat(WORDS_AT))
  for await (const { type, delta = '' } of eventsOf(response)) {
    if (type !== EventType.TEXT_MESSAGE_CONTENT) continue
    print(`${whole === '' ? '' : styled('dim', '¦')}${delta}`)
    whole += delta
  }
  print('\n')
  if (whole !== expected) print(`${WRONG} ${styled('red', `expected the answer ${show(expected)}; got ${show(whole)}`)}\n`)
  return whole === expected
}

/** The events of a stream; comments, which only keep it alive, are left out. */
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

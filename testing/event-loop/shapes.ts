/** Requests that cost much for their bytes: each is small enough to be read, or refused only when much of it has come. */

const MIB = 2 ** 20

/** A body that is sent, and how it is answered. */
export interface Shape {
  readonly name: string
  /** Which gateway it is sent to. */
  readonly to: 'routes' | 'single' | 'narrow' | 'owned' | 'verified'
  readonly path: string
  readonly type: string
  readonly status: number
  /** The bytes, or the whole request as it goes over the wire. */
  readonly body: () => Buffer
}

const repeated = (count: number, item: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => item(at)).join()

const RUN = '"threadId":"t1","runId":"r1","messages":[],"tools":[],"context":[]'
const run = (more: string): string => `{${RUN},${more}}`
const state = (value: string): string => run(`"state":${value}`)

/** A key that is dropped: the messages are written again, member by member. */
const message = (content: string): string =>
  `{"threadId":"t1","runId":"r1","messages":[{"id":"m","role":"activity","activityType":"a","content":${content},"x":1}],"tools":[],"context":[]}`

/** Objects of so many members, each the first member of the one around it. */
const nested = (count: number, members: number): string =>
  `${'{"in":'.repeat(count)}1${`,${repeated(members - 1, (at) => `"k${at}":1`)}}`.repeat(count)}`

/** Up to the bound of a body, and short of it by what else is in it. */
const ROOM = 64 * MIB - 1024
const filled = (text: string, bytes = ROOM): string => text.repeat(Math.floor(bytes / Buffer.byteLength(text)))

const BODIES: readonly (readonly [name: string, status: number, body: () => string])[] = [
  ['a run of 16 KB', 200, () => state(`"${filled('x', 16_000)}"`)],
  ['one string', 200, () => state(`"${filled('x')}"`)],
  ['one string, with a character beyond Latin-1', 200, () => state(`"漢${filled('x')}"`)],
  ['one string of emoji', 200, () => state(`"${filled('😀')}"`)],
  ['one string of escapes', 200, () => state(`"${filled('\\n')}"`)],
  ['one string of escaped characters', 200, () => state(`"${filled('\\u00e9')}"`)],
  ['one string of escaped surrogates', 200, () => state(`"${filled('\\ud83d\\ude00')}"`)],
  ['one string of backslashes', 200, () => state(`"${filled('\\\\')}"`)],
  ['a thread id of 60 MB', 400, () => `{"threadId":"${filled('x')}"}`],
  ['white space', 200, () => state(`${filled(' ')}1`)],
  ['lists in lists', 200, () => state(`[${repeated(1900, () => `${'['.repeat(120)}${']'.repeat(120)}`)}]`)],
  ['objects in objects', 200, () => state(`[${repeated(1900, (at) => `${`{"k${at}":`.repeat(120)}1${'}'.repeat(120)}`)}]`)],
  ['empty lists', 200, () => state(`[${repeated(120_000, () => '[]')}]`)],
  ['more lists than are taken', 413, () => state(`[${repeated(260_000, () => '[]')}]`)],
  ['numbers with exponents', 200, () => state(`[${repeated(240_000, (at) => `-1.${at}5e-${at % 300}`)}]`)],
  ['long numbers', 200, () => state(`[${repeated(15_000, () => `0.${'1234567890'.repeat(400)}`)}]`)],
  ['a number of 60 MB', 400, () => state(`0.${filled('1')}`)],
  ['wide objects in each other, in a message', 200, () => message(nested(40, 6000))],
  [
    'wide objects in each other, below many others',
    200,
    () => message(`${'{"a":'.repeat(55)}${nested(40, 6000)}${'}'.repeat(55)}`),
  ],
  ['a key for each value', 200, () => state(`[${repeated(120_000, (at) => `{"key-${at}":1}`)}]`)],
  ['whole numbers as keys', 200, () => state(`[${repeated(120_000, () => '{"999":1}')}]`)],
  ['escaped keys', 200, () => state(`[${repeated(120_000, (at) => `{"\\u006bey-${at}":1}`)}]`)],
  [
    'escaped keys in 51 MB',
    200,
    () => state(`[${repeated(27, () => `{${repeated(9000, (at) => `"\\u006b${'x'.repeat(190)}${at}":1`)}}`)}]`),
  ],
  ['members of one object', 413, () => state(`{${repeated(240_000, (at) => `"k${at}":1`)}}`)],
  ['as many members as an object may have', 200, () => state(`{${repeated(10_000, (at) => `"k${at}":"${'x'.repeat(5000)}"`)}}`)],
  ['members of the body', 413, () => `{${RUN},${repeated(240_000, (at) => `"k${at}":1`)}}`],
  ['members of forwardedProps', 413, () => run(`"forwardedProps":{${repeated(110_000, (at) => `"k${at}":1`)}}`)],
  ['as many of forwardedProps as it may have', 200, () => run(`"forwardedProps":{${repeated(9999, (at) => `"k${at}":1`)}}`)],
  ['members of command', 413, () => run(`"forwardedProps":{"command":{${repeated(200_000, (at) => `"k${at}":1`)}}}`)],
  ['long keys', 413, () => state(`{${repeated(3900, (at) => `"${'k'.repeat(16_400)}${at + 10_000}":1`)}}`)],
  [
    'keys that are just not long',
    200,
    () => state(`[${repeated(6, (list) => `{${repeated(9000, (at) => `"${'k'.repeat(1000)}${list}${at + 10_000}":1`)}}`)}]`),
  ],
  ['a key of 60 MB', 413, () => state(`{"${filled('k')}":1}`)],
  [
    'many messages',
    200,
    () =>
      run(`"messages":[${repeated(60_000, (at) => `{"id":"m${at}","role":"user","content":"x"}`)}]`).replace(
        '"messages":[],',
        '',
      ),
  ],
  [
    'many tools',
    200,
    () =>
      run(`"tools":[${repeated(49_000, (at) => `{"name":"t${at}","description":"d","parameters":{}}`)}]`).replace(
        '"tools":[],',
        '',
      ),
  ],
  [
    'tools of many members',
    200,
    () =>
      run(
        `"tools":[${repeated(25, () => `{"name":"t1",${repeated(9900, (at) => `"k${at}":1`)},"description":"d","parameters":{}}`)}]`,
      ).replace('"tools":[],', ''),
  ],
  [
    'messages with unknown keys',
    200,
    () =>
      run(`"resume":[]`).replace(
        '"messages":[]',
        `"messages":[${repeated(24, () => `{"role":"user",${repeated(9900, (at) => `"k${at}":1`)}}`)}]`,
      ),
  ],
  [
    'parts with unknown keys',
    200,
    () =>
      run(`"resume":[]`).replace(
        '"messages":[]',
        `"messages":[{"role":"user","content":[${repeated(80_000, () => '{"type":"text","x":1}')}]}]`,
      ),
  ],
  [
    'lists of lists of calls',
    200,
    () =>
      run(`"resume":[]`).replace(
        '"messages":[]',
        `"messages":[${repeated(40_000, () => '{"role":"assistant","toolCalls":[[1]]}')}]`,
      ),
  ],
  ['many tools without a name', 200, () => run(`"tools":[${repeated(240_000, () => '0')}]`).replace('"tools":[],', '')],
  [
    'tools in the state',
    200,
    () => state(`{"tools":[${repeated(60_000, (at) => `{"name":"t${at}","x":1}`)}],"other":"${filled('x', 30 * MIB)}"}`),
  ],
  ['no JSON, at its end', 400, () => `${state(`"${filled('x')}"`)}x`],
]

/** Bodies of runs. */
function ofRuns(to: Shape['to']): readonly Shape[] {
  return BODIES.map(([name, status, body]) => ({
    name: `${name}, ${to}`,
    to,
    path: '/agent/default/run',
    type: 'application/json',
    status,
    body: () => Buffer.from(body()),
  }))
}

const envelope = (body: string, params = '"agentId":"default"'): string =>
  `{"method":"agent/run","params":{${params}},"body":${body}}`

/** The same in envelopes. */
const ENVELOPES: readonly Shape[] = [
  ...BODIES.map(([name, status, body]) => [name, status, () => envelope(body())] as const),
  [
    'members of the params',
    413,
    () =>
      envelope(
        run('"a":1'),
        repeated(9000, (at) => `"k${at}":1`),
      ),
  ] as const,
  ['a param of 60 MB', 400, () => envelope(run('"a":1'), `"agentId":"${filled('a')}"`)] as const,
  ['a method of 60 MB', 404, () => `{"method":"${filled('a')}"}`] as const,
  ['members of the envelope', 413, () => `{"method":"info",${repeated(240_000, (at) => `"k${at}":1`)}}`] as const,
].map(([name, status, body]) => ({
  name: `${name}, in an envelope`,
  to: 'routes',
  path: '',
  type: 'application/json',
  // Some 70 bytes more than the bound would be another test.
  status,
  body: () => Buffer.from(body()),
}))

const BOUNDARY = 'b'.repeat(40)
const form = (content: Buffer): Buffer =>
  Buffer.concat([
    Buffer.from(
      `--${BOUNDARY}\r\ncontent-disposition: form-data; name="audio"; filename="a.webm"\r\ncontent-type: audio/webm\r\n\r\n`,
    ),
    content,
    Buffer.from(`\r\n--${BOUNDARY}--\r\n`),
  ])

const RECORDINGS: readonly Shape[] = (
  [
    ['a recording of 47 MB', () => Buffer.alloc(47 * MIB, 'x')],
    ['a recording of hyphens', () => Buffer.alloc(47 * MIB, '-')],
    ['a recording of what the boundary is made of', () => Buffer.alloc(47 * MIB, `${'b'.repeat(39)}-`)],
  ] as const
).map(([name, content]) => ({
  name,
  to: 'single',
  path: '/transcribe',
  type: `multipart/form-data; boundary=${BOUNDARY}`,
  status: 200,
  body: () => form(content()),
}))

/** All of them. */
export const SHAPES: readonly Shape[] = [...ofRuns('routes'), ...ofRuns('narrow'), ...ENVELOPES, ...RECORDINGS]

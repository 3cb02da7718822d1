/**
 * Request targets: a route of the table, and then up to three edits of the kind that made somebody's router read
 * another one (runtime-behaviour.md, "Targets and ids", docs/contributing/threat-model.md). Some are put together from loose pieces alone.
 */
import fc from 'fast-check'
import { ROUTE_WORDS } from '../../src/core/route/ids.ts'
import { QUERY_NAMES } from '../../src/core/route/all-routes.ts'
import type { Route } from '../../src/core/route/routes.ts'
import { agentId, anyId, goodId } from './grammar-ids.ts'

/** Writes a target for a route below a public path. */
export type Spell = (route: Route, publicPath: string) => string

export type Edit = (path: string) => string

const at = fc.nat({ max: 9 })
const words = fc.constantFrom(...ROUTE_WORDS)
const dots = ['.', '..', '%2e', '%2E%2e', '.%2e', '..;', '.;', '%252e%252e', '...', '%2e%2e%2f']
const slashes = [
  '\\',
  '//',
  '/\\',
  '%2f',
  '%2F',
  '%5c',
  '%252f',
  '%25252f',
  ';',
  '/./',
  '/x/../',
  '/%2e/',
  '#',
  '/#/',
  '?',
  '%3f',
  '%23',
  '%00',
  '\t',
  '\u2215',
  '\uff0f',
]
const suffixes = [
  '/',
  '//',
  '/.',
  '/..',
  '/../..',
  '#',
  '#x',
  '#/messages',
  ';',
  ';a=b',
  ';/clear',
  '%20',
  ' ',
  '.',
  '..',
  '.json',
  '%2f',
  '%00',
  '\u3000',
  '\\',
  '\\..',
  '/%2e',
  '/%2e%2e',
  '~',
  '*',
  '&',
  ',',
  "'",
  '%0a',
  '%0d%0a',
  '\u00a0',
  '/ ',
  '%',
  '%z',
  '|',
  '"',
  '`',
]
const prefixes = [
  '/',
  '//',
  '/\\',
  '\\',
  '\\\\',
  '///',
  '//evil.example',
  'http://evil.example',
  'HTTP://evil.example',
  'https:',
  'http:',
  'http:/',
  'file://',
  '/.',
  '/..',
  '/%2e%2e',
  '/x/..',
  '*',
  '',
  ' ',
  '/;',
  '//[::1]',
  '//user@evil.example',
  '//evil.example:80',
  '?',
  '#',
  '/api',
  '/api/copilotkit',
  '/chat',
  '/API/copilotkit',
  '/api%2fcopilotkit',
  '/api/copilotkit/..',
  '/api/copilotkitx',
]
// oxfmt-ignore
const strays = ['|', '{', '}', '"', '^', '<', '>', '`', ' ', '\t', '\0', '\x7f', '\x80', 'é', '\u200b', '\ufeff', '\ud800', '😀', '%zz', '%', '%f', '%ff', '%c0%af', '%e0%80%af', '%ed%a0%80', '%u002f', '%E2%80%8B', '%EF%BC%8F', '%7f', '%0a', '+', '@', ':', '%3a', '%3A', '~', '%7E', '!', '*', "'", '(', ')', ',', '$', '=', '&']

const inSegments = (path: string, change: (segments: string[]) => void): string => {
  const segments = path.split('/')
  change(segments)
  return segments.join('/')
}
const place = (length: number, index: number): number => (length === 0 ? 0 : index % length)
// From the end: the runtime matches there.
const fromEnd = (length: number, index: number): number => length - 1 - place(length, index)

const segmentPieces = fc.oneof(
  words,
  fc.constantFrom(...dots),
  fc.constantFrom('', 'x', 'junk', 'agent/default', 'threads/t2'),
  anyId,
)

const edit: fc.Arbitrary<Edit> = fc.oneof(
  fc.tuple(at, segmentPieces).map(
    ([index, piece]): Edit =>
      (path) =>
        inSegments(path, (segments) => void segments.splice(fromEnd(segments.length, index) + 1, 0, piece)),
  ),
  fc.tuple(at, segmentPieces).map(
    ([index, piece]): Edit =>
      (path) =>
        inSegments(path, (segments) => void (segments[fromEnd(segments.length, index)] = piece)),
  ),
  at.map(
    (index): Edit =>
      (path) =>
        inSegments(path, (segments) => void segments.splice(fromEnd(segments.length, index), 1)),
  ),
  fc.tuple(at, at).map(
    ([index, times]): Edit =>
      (path) =>
        inSegments(path, (segments) => {
          const end = fromEnd(segments.length, index)
          segments.splice(end, 0, ...segments.slice(Math.max(0, end - (times % 3)), end + 1))
        }),
  ),
  fc.tuple(at, fc.constantFrom(...slashes)).map(([index, piece]): Edit => (path) => {
    const parts = path.split('/')
    const end = fromEnd(parts.length - 1, index)
    return [...parts.slice(0, end), `${parts[end] ?? ''}${piece}${parts[end + 1] ?? ''}`, ...parts.slice(end + 2)].join('/')
  }),
  fc.tuple(fc.nat({ max: 40 }), fc.constantFrom('upper', 'lower', 'twice')).map(([index, how]): Edit => (path) => {
    const position = fromEnd(path.length, index)
    const code = path.charCodeAt(position) & 0xff
    const hex = code.toString(16).padStart(2, '0')
    const written = how === 'upper' ? `%${hex.toUpperCase()}` : how === 'lower' ? `%${hex}` : `%25${hex}`
    return `${path.slice(0, position)}${written}${path.slice(position + 1)}`
  }),
  fc.tuple(at, fc.boolean()).map(
    ([index, whole]): Edit =>
      (path) =>
        inSegments(path, (segments) => {
          const end = fromEnd(segments.length, index)
          const word = segments[end] ?? ''
          segments[end] = whole ? word.toUpperCase() : word.slice(0, 1).toUpperCase() + word.slice(1)
        }),
  ),
  fc.constantFrom(...suffixes).map(
    (suffix): Edit =>
      (path) =>
        `${path}${suffix}`,
  ),
  fc.tuple(words, fc.constantFrom('/', '/x/', '/../', '\\', '#', '?', ';', '%2f')).map(
    ([word, between]): Edit =>
      (path) =>
        `${path}${between}${word}`,
  ),
  fc.constantFrom(...prefixes).map(
    (prefix): Edit =>
      (path) =>
        `${prefix}${path}`,
  ),
  fc.tuple(fc.nat({ max: 40 }), fc.constantFrom(...strays)).map(([index, piece]): Edit => (path) => {
    const position = fromEnd(path.length, index) + 1
    return `${path.slice(0, position)}${piece}${path.slice(position)}`
  }),
  fc.constantFrom('/threads/clear', '/info', '/threads/victim-1/messages', '/agent/agent/run').map(
    (other): Edit =>
      (path) =>
        `${path}/../..${other}`,
  ),
)

/** How an id is written in a path. A lone surrogate can't be encoded: it goes raw. */
export const idSpelling = fc.oneof(
  { arbitrary: fc.constant((id: string) => (id.isWellFormed() ? encodeURIComponent(id) : id)), weight: 8 },
  { arbitrary: fc.constant((id: string) => id), weight: 3 },
  { arbitrary: fc.constant((id: string) => everyByte(id)), weight: 1 },
  { arbitrary: fc.constant((id: string) => (id.isWellFormed() ? encodeURIComponent(encodeURIComponent(id)) : id)), weight: 1 },
)

function everyByte(id: string): string {
  return [...Buffer.from(id, 'utf8')].map((byte) => `%${byte.toString(16).padStart(2, '0').toUpperCase()}`).join('')
}

export type OfRoute = (route: Route) => string
const queryName: fc.Arbitrary<OfRoute> = fc.oneof(
  {
    arbitrary: at.map(
      (index): OfRoute =>
        ({ query: known }) =>
          known[place(known.length, index)] ?? 'x',
    ),
    weight: 6,
  },
  {
    arbitrary: fc.constantFrom(...QUERY_NAMES).map(
      (name): OfRoute =>
        () =>
          name,
    ),
    weight: 3,
  },
  {
    arbitrary: fc
      .constantFrom(
        'agent%49d',
        'AGENTID',
        'agentId[]',
        'threadId',
        'x',
        '',
        '__proto__',
        '_method',
        'a%ff',
        'limit%00',
        '%6cimit',
      )
      .map(
        (name): OfRoute =>
          () =>
            name,
      ),
    weight: 3,
  },
)
const queryValue = fc.oneof(
  {
    arbitrary: fc.constantFrom('default', '10', '1', '0', '-1', '1e3', 'true', 'false', 'x', '', '9999999', '+1', 'a%2Fb', 'a+b'),
    weight: 6,
  },
  {
    arbitrary: fc.constantFrom(
      '%ff',
      '%00',
      '%',
      '%zz',
      '/threads/victim-1/state',
      '/threads/t1/state',
      '/api/copilotkit/info',
      '/info',
      '../clear',
      '%0a',
      'a=b',
      'a?b',
      'a;b',
      'a#b',
      '%EF%BB%BF1',
      '\u00e9',
      '"',
      '%26x=1',
      "'",
    ),
    weight: 2,
  },
  { arbitrary: goodId, weight: 1 },
)
const pair = fc.tuple(queryName, fc.constantFrom('=', '=', '=', '=', '', '=='), queryValue).map(
  ([name, equals, value]): OfRoute =>
    (route) =>
      `${name(route)}${equals}${value}`,
)
/** A query that some router would take for the path. */
const pathInQuery = fc
  .tuple(
    fc.constantFrom(...QUERY_NAMES, 'path', 'url', '_path'),
    fc.constantFrom('/info', '/threads/t1/state', '/threads/clear', '/api/copilotkit/threads/t1/messages', '../clear'),
  )
  .map(
    (parts): OfRoute =>
      () =>
        `?${parts.join('=')}`,
  )

export const query: fc.Arbitrary<OfRoute> = fc.oneof(
  { arbitrary: pathInQuery, weight: 1 },
  { arbitrary: fc.constant(() => ''), weight: 6 },
  {
    arbitrary: fc
      .constantFrom('?limit=0', '?limit=x', '?limit=10', '?cursor=x', '?cursor=', '?limit=5&cursor=eA')
      .map((text) => () => text),
    weight: 1,
  },
  {
    arbitrary: fc.tuple(fc.array(pair, { maxLength: 3 }), fc.constantFrom('&', '&', '&', '&&', ';', '&amp;', '?')).map(
      ([pairs, by]): OfRoute =>
        (route) =>
          `?${pairs.map((one) => one(route)).join(by)}`,
    ),
    weight: 3,
  },
)

/** Edits of a path: mostly none. */
export const edits = fc.oneof(
  { arbitrary: fc.constant<Edit[]>([]), weight: 22 },
  { arbitrary: fc.array(edit, { minLength: 1, maxLength: 1 }), weight: 4 },
  { arbitrary: fc.array(edit, { minLength: 2, maxLength: 3 }), weight: 2 },
)

const ofTheTable: fc.Arbitrary<Spell> = fc
  .record({ agent: agentId, id: anyId, write: idSpelling, edits, query })
  .map((parts): Spell => (route, publicPath) => {
    const ids: Readonly<Record<string, string>> = { ':agentId': parts.agent, ':threadId': parts.id, ':memoryId': parts.id }
    const path = [publicPath, ...route.path.map((word) => (ids[word] === undefined ? word : parts.write(ids[word])))].join('/')
    return parts.edits.reduce((text, change) => change(text), path) + parts.query(route)
  })

const loosePiece = fc.oneof(words, fc.constantFrom('/', '/', '/', ...slashes, ...dots, ...suffixes, ...strays), anyId)
const ofLoosePieces: fc.Arbitrary<Spell> = fc
  .tuple(fc.constantFrom('', '/', '/'), fc.array(loosePiece, { maxLength: 9 }), fc.boolean())
  .map(
    ([start, pieces, below]): Spell =>
      (_route, publicPath) =>
        `${below ? publicPath : ''}${start}${pieces.join('')}`,
  )

/** The base path itself, where the client asks for /info by its body. */
const base: fc.Arbitrary<Spell> = fc.constantFrom('', '', '/', '?', '//', '/.', '#').map(
  (end): Spell =>
    (_route, publicPath) =>
      `${publicPath}${end}`,
)

/** A target. */
export const spelling = fc.oneof(
  { arbitrary: ofTheTable, weight: 16 },
  { arbitrary: ofLoosePieces, weight: 2 },
  { arbitrary: base, weight: 1 },
)

/** docs/reference/timeouts.md has the fixed limits of the source, and codes that exist. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { CODES } from '../../src/core/reasons.ts'
import { MOST_PLAIN, MOST_SECURE } from '../../src/config/connections.ts'
import { OPERATOR_LISTENER, publicListener } from '../../src/http/listeners/listening.ts'
import { page, ROOT, rows } from './markdown.ts'

const PAGE = page('docs/reference/timeouts.md')

/** The value of `const NAME = 5 * 1024` or `name: 5000` in a file. */
function constant(file: string, name: string): number {
  const text = readFileSync(join(ROOT, 'src', file), 'utf8')
  const [, value] = new RegExp(`\\b${name}(?: =|:) (-?[\\d_]+(?: \\*\\*? [\\d_]+)*)`).exec(text) ?? []
  if (value === undefined) throw new Error(`${file} has no ${name}`)
  return value
    .split(' * ')
    .map((factor) => factor.split(' ** ').map((part) => Number(part.replaceAll('_', ''))))
    .reduce((product, [base = 0, power = 1]) => product * base ** power, 1)
}

const seconds = (milliseconds: number): string => `${milliseconds / 1000} s`
const bytes = (size: number): string => (size >= 1024 ** 2 ? `${size / 1024 ** 2} MiB` : `${size / 1024} KiB`)

/** A part of the row that begins with a text, in the order of the page. */
const FIXED: readonly (readonly [row: string, expected: string])[] = [
  ['`listen.connections` |', `\`${MOST_PLAIN}\`; \`${MOST_SECURE}\` with`],
  ['a whole request, head and body', seconds(publicListener(1).requestTimeout)],
  ['the head of a request', `${seconds(constant('http/listeners/listening.ts', 'HEAD_TIMEOUT_MS'))}, checked every 30 s`],
  ['a TLS handshake', seconds(constant('http/listeners/tls.ts', 'HANDSHAKE_TIMEOUT_MS'))],
  ['lines of a head', String(constant('core/wire/headers.ts', 'MAX_HEADER_LINES'))],
  ['an idle connection', seconds(publicListener(1).keepAliveTimeout)],
  ['pipelined requests', String(constant('http/listeners/app.ts', 'MAX_PIPELINED'))],
  ['connections that wait', String(constant('http/listeners/listening.ts', 'BACKLOG'))],
  ['a client that vanished', seconds(constant('http/listeners/listening.ts', 'PROBE_AFTER_MS'))],
  ['a response that a slow client', bytes(constant('http/listeners/listening.ts', 'HIGH_WATER_MARK'))],
  ['a whole request, and its head', `${seconds(OPERATOR_LISTENER.requestTimeout)}, checked every 5 s`],
  ['a body', bytes(OPERATOR_LISTENER.bodyLimit)],
  ['open connections of the health', String(constant('http/listeners/health.ts', 'MOST_CONNECTIONS'))],
  ['`Authorization` header', String(constant('jwt/unverified.ts', 'MAX_LENGTH'))],
  ['keys tried for a token', String(constant('jwt/verify.ts', 'MAX_CANDIDATES'))],
  ['nesting of a JSON body', String(constant('core/json/read.ts', 'MAX_DEPTH'))],
  ['values in a JSON body', String(constant('core/json/read.ts', 'MAX_VALUES'))],
  ['members of the body itself', String(constant('core/route/bodies.ts', 'MAX_TOP_MEMBERS'))],
  [`keys longer than ${constant('core/json/read.ts', 'LONG_KEY')}`, bytes(constant('core/json/read.ts', 'MAX_LONG_KEYS'))],
  ['digits of a number', String(constant('core/json/read.ts', 'MAX_NUMBER'))],
  ['the head of a response', bytes(constant('http/upstream/upstream.ts', 'maxHeaderSize'))],
  ['an idle connection | 1 s', `${seconds(constant('http/upstream/upstream.ts', 'keepAliveTimeout'))}, or 4 s less`],
  ['an idle connection | 1 s', seconds(constant('http/upstream/upstream.ts', 'keepAliveMaxTimeout'))],
  ['an idle connection | 1 s', `or ${seconds(constant('http/upstream/upstream.ts', 'keepAliveTimeoutThreshold'))} less`],
  ['each address of a name', `${constant('http/upstream/upstream.ts', 'autoSelectFamilyAttemptTimeout')} ms`],
  ['an upstream that vanished', seconds(constant('http/upstream/upstream.ts', 'keepAliveInitialDelay'))],
  ['the answer to `info`', seconds(constant('http/upstream/transport-probe.ts', 'PROBE_TIMEOUT_MS'))],
  ['the answer to `info`', bytes(constant('http/upstream/transport-probe.ts', 'MAX_INFO_BYTES'))],
  ['pages that the gateway reads', String(constant('http/lists/thread-list.ts', 'MAX_PAGES'))],
  ['a page of a thread list', bytes(constant('http/lists/thread-list.ts', 'MAX_PAGE_BYTES'))],
  ['`limit` of a list request', String(constant('core/wire/thread-page.ts', 'MAX_LIMIT'))],
  ['a history that', bytes(constant('http/pipeline/history.ts', 'MAX_BYTES'))],
  ['fetching keys', seconds(constant('jwt/document.ts', 'FETCH_TIMEOUT_MS'))],
  ['fetching keys', bytes(constant('jwt/document.ts', 'MAX_DOCUMENT_BYTES'))],
  ['fetching keys', `${constant('jwt/key-source.ts', 'MAX_KEYS')} keys`],
  ['the pause between two fetches', seconds(constant('jwt/key-source.ts', 'COOL_DOWN_MS'))],
  ['an introspection answer', bytes(constant('auth/fetching.ts', 'MAX_ANSWER_BYTES'))],
  ['open introspection requests', String(constant('auth/introspection.ts', 'MAX_QUESTIONS'))],
  ['waiting for a lock', seconds(constant('store/sqlite/file.ts', 'PATIENCE_MS'))],
  ['an idle transaction', seconds(constant('postgres/connecting.ts', 'IDLE_IN_TRANSACTION_MS'))],
]

void test('the fixed limits', (t) => {
  const lines = PAGE.text.split('\n')
  for (const [row, expected] of FIXED) {
    const found = lines.filter((line) => line.startsWith(`| ${row}`))
    t.ok(
      found.some((line) => new RegExp(`(?<![\\d.])${expected.replaceAll('.', String.raw`\.`)}`).test(line)),
      `${row}: ${expected}`,
    )
  }
  t.end()
})

void test('each status has its code', (t) => {
  const found = rows(PAGE.text).flatMap((cells) => [...(cells.at(-1) ?? '').matchAll(/\b([45]\d\d) `([a-z-]+)`/g)])
  t.ok(found.length > 15)
  for (const [, status, code = ''] of found) t.equal(CODES[code as keyof typeof CODES].status, Number(status), code)
  t.end()
})

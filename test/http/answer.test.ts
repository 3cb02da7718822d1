/** The answers that the gateway makes itself, code by code: status, text, and the headers that tell a client what to do next. */
import { test } from 'tap'
import { CODES, refuse, type Code } from '../../src/core/reasons.ts'
import { refusalAnswer } from '../../src/http/pipeline/answer.ts'

const COMMON = { 'content-type': 'application/json', 'cache-control': 'no-store' }

/** What else the answers of some codes carry. */
const MORE: Partial<Record<Code, Record<string, string>>> = {
  'header-malformed': { connection: 'close' },
  'body-too-large': { connection: 'close' },
  'credential-missing': { 'www-authenticate': 'Bearer' },
  'credential-invalid': { 'www-authenticate': 'Bearer error="invalid_token", error_description="the token is not valid"' },
  'credential-expired': { 'www-authenticate': 'Bearer error="invalid_token", error_description="the token expired"' },
  'not-ready': { 'retry-after': '1' },
  'keys-unavailable': { 'retry-after': '5' },
  'store-unavailable': { 'retry-after': '5' },
  'shutting-down': { 'retry-after': '1' },
}

void test('every code has its status, its text as error and as message, and its headers, and no others', (t) => {
  for (const code of Object.keys(CODES) as Code[]) {
    const { status, headers, body } = refusalAnswer(refuse('internal', { code }))
    const { text } = CODES[code]
    t.equal(status, CODES[code].status, code)
    t.same(Object.entries(headers), Object.entries({ ...COMMON, ...MORE[code] }), code)
    t.equal(body, JSON.stringify({ error: text, message: text, code }), code)
  }
  t.end()
})

void test('a 405 names the methods, and a status that is to be kept is kept', (t) => {
  const { headers } = refusalAnswer(refuse('method-not-allowed', { allow: ['GET', 'POST'] }))
  t.same(headers, { ...COMMON, allow: 'GET, POST' })
  t.match(refusalAnswer(refuse('upstream-html'), 418), { status: 418, body: '"code":"upstream-unusable"' })
  t.end()
})

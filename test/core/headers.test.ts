/** Header rules: few pass, each once; the server's win; nothing of the way back is for shared caches. */
import { test } from 'tap'
import { answerKind, forwardedAnswerHeaders, forwardingFault, headerFault, headerLines, isJsonType, multipartType, upstreamHeaders } from '../../src/core/headers.ts' // prettier-ignore

const lines = (...pairs: [string, string][]) => headerLines(pairs.flat())
const HOST: [string, string] = ['Host', 'gateway']
const rules = { server: { 'x-service': 's', authorization: 'Bearer service' }, forward: ['x-app'], forwardAuthorization: true }

void test('only named headers go upstream, and the server’s win', (t) => {
  const caller = lines(
    ['Accept', 'a'], ['accept', 'b'], ['Authorization', 'Bearer caller'], ['X-Service', 'mine'], ['x-app', '1'], ['X-App', '2'],
    ['Cookie', 'c'], ['X-User-Id', 'bob'], ['x_service', 'mine'], ['x-forwarded-for', '1.2.3.4'], ['Connection', 'authorization, x-service'],
    ['Host', 'evil'], ['accept-encoding', 'gzip'], ['x-cpki-user-id', 'bob'], ['Content-Type', 'text/plain'],
  ) // prettier-ignore
  t.same(upstreamHeaders(caller, rules, { 'content-type': 'application/json' }), {
    accept: 'a, b',
    'x-app': '1, 2',
    'accept-encoding': 'identity',
    'content-type': 'application/json',
    'x-service': 's',
    authorization: 'Bearer service',
  })
  const plain = { server: {}, forward: [], forwardAuthorization: true }
  t.equal(upstreamHeaders(caller, plain, {})['authorization'], 'Bearer caller')
  t.notOk('authorization' in upstreamHeaders(caller, { ...plain, forwardAuthorization: false }, {}))
  t.end()
})

void test('lines that two readers could read differently are refused', (t) => {
  t.equal(headerFault(lines(HOST, ['Authorization', 'Bearer a'], ['Accept', 'a'], ['accept', 'b'])), null)
  t.match(headerFault(lines(['Authorization', 'Bearer a'], ['authorization', 'Bearer b'])), { reason: 'authorization-repeated' })
  t.match(headerFault(lines(['authorization', 'Bearer a, Bearer b'])), { reason: 'authorization-repeated' })
  for (const name of [
    'Host',
    'Content-Type',
    'Content-Length',
    'Origin',
    'Transfer-Encoding',
    'User-Agent',
    'Content-Encoding',
  ]) {
    t.match(headerFault(lines([name, 'chunked'], [name.toLowerCase(), 'chunked'])), { reason: 'header-repeated' }, name)
  }
  for (const coding of ['gzip, chunked', 'identity', 'chunked, chunked', 'xchunked']) {
    t.match(headerFault(lines(HOST, ['Transfer-Encoding', coding])), { reason: 'transfer-coding-unsupported' }, coding)
  }
  t.end()
})

void test('a request names its host, and expects nothing but 100-continue', (t) => {
  t.match(headerFault(lines()), { reason: 'host-missing' })
  t.equal(headerFault(lines(), '1.0'), null)
  for (const version of ['0.9', '1.2', '2.0', '11', '1', '']) {
    t.match(headerFault(lines(HOST), version), { reason: 'http-version-unsupported', code: 'header-malformed' }, version)
  }
  t.equal(headerFault(lines(), '1.0'), null, 'HTTP/1.0 knows no Host')
  t.match(headerFault(lines(HOST, ['Expect', 'foo'])), { reason: 'expectation-unsupported' })
  t.equal(headerFault(lines(HOST, ['Expect', '100-Continue'])), null)
  t.end()
})

void test('reserved names can’t be forwarded', (t) => {
  const refused = ['Host', 'content-length', 'Cookie', 'forwarded', 'X-Forwarded-For', 'x-forwarded-user', 'x-real-ip', 'x-original-url', 'X-Rewrite-Url', 'x-http-method-override', 'x-http-method', 'x-cpki-user-id', 'x-threadwarden-user', 'connection', 'te', 'x_a', 'X-Service', 'a b', '', 'expect', 'range', 'if-none-match', 'accept-encoding'] // prettier-ignore
  for (const name of refused) t.ok(forwardingFault(name, ['x-service']), name)
  for (const name of ['x-app', 'X-Tenant', 'x-copilotcloud-public-api-key', 'x-forwardedness'])
    t.equal(forwardingFault(name, ['x-service']), null, name)
  t.end()
})

void test('answers are told apart by status and type', (t) => {
  t.equal(answerKind(200, { 'content-type': 'text/event-stream; charset=utf-8' }), 'stream')
  t.equal(answerKind(200, { 'content-type': 'application/vnd.ag-ui.event+proto' }), 'stream')
  t.equal(answerKind(200, { 'content-type': 'Text/HTML' }), 'html')
  t.equal(answerKind(500, { 'content-type': 'application/xhtml+xml' }), 'html')
  for (const status of [301, 302, 304, 307]) t.equal(answerKind(status, {}), 'redirect')
  t.equal(answerKind(200, { 'content-type': 'application/json' }), 'plain')
  t.equal(answerKind(204, {}), 'plain')
  t.end()
})

void test('what ends at this hop, opens another origin, redirects or lets caches keep it is dropped from answers', (t) => {
  const headers = {
    connection: 'keep-alive, x-hop', 'x-hop': '1', 'keep-alive': 'timeout=5', 'transfer-encoding': 'chunked', trailer: 'x', upgrade: 'h2c',
    'access-control-allow-origin': '*', location: '/x', etag: '"1"', age: '1', expires: 'x', 'cache-control': 'public, max-age=60',
    'content-type': 'application/json', 'content-length': '2', 'x-more': ['a', 'b'], 'x-request-id': 'theirs',
  } // prettier-ignore
  t.same(forwardedAnswerHeaders(headers, 'plain'), {
    'content-type': 'application/json',
    'content-length': '2',
    'x-more': ['a', 'b'],
    'cache-control': 'private, no-store',
  })
  t.same(forwardedAnswerHeaders({ 'content-type': 'text/event-stream', 'content-length': '9' }, 'stream'), {
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  })
  t.end()
})

void test('content types: JSON in UTF-8 only, multipart with a boundary that can be no media type', (t) => {
  for (const type of [
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
  ])
    t.ok(isJsonType(type), type)
  for (const type of ['', 'text/plain', 'application/json; charset=utf-16', 'application/json; charset=utf-7', 'application/json; x=1', 'application/jsonx', 'text/plain, application/json', 'application/json; charset=utf-8; charset=utf-7']) t.notOk(isJsonType(type), type) // prettier-ignore
  t.equal(
    multipartType('multipart/form-data; boundary=----WebKitFormBoundaryABC123'),
    'multipart/form-data; boundary=----WebKitFormBoundaryABC123',
  )
  t.equal(multipartType('multipart/form-data; boundary="a b:c"'), 'multipart/form-data; boundary="a b:c"')
  for (const type of ['multipart/form-data', 'multipart/mixed; boundary=a', 'multipart/form-data; boundary=a/b', 'multipart/form-data; boundary="application/json"', 'multipart/form-data; boundary=', `multipart/form-data; boundary=${'a'.repeat(71)}`, 'multipart/form-data; boundary="a "', 'multipart/form-data; boundary=a; boundary=b', 'multipart/form-data; x=application/json; boundary=a']) t.equal(multipartType(type), null, type) // prettier-ignore
  t.end()
})

/** Header rules: few pass, each once; the server's win; nothing of the way back is for shared caches. */
import { test } from 'tap'
import { answerKind, forwardedAnswerHeaders, forwardingFault, headerFault, headerLines, isJsonType, multipartType, passesAnyway, settingFault, upstreamHeaders } from '../../src/core/wire/headers.ts' // oxfmt-ignore

const lines = (...pairs: [string, string][]) => headerLines(pairs.flat())
const HOST: [string, string] = ['Host', 'gateway']
// RFC 9110 §7.6.1, and what RFC 2616 §13.5.1 named
const HOP_BY_HOP = ['connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'http2-settings'] // oxfmt-ignore
const BUILT_IN = ['accept', 'accept-language', 'user-agent', 'traceparent', 'tracestate']
const capital = (name: string) => name.replace(/(?:^|-)[a-z]/g, (letter) => letter.toUpperCase())
const rules = {
  server: { 'x-service': 's', authorization: 'Bearer service' },
  forward: ['x-app'],
  forwardAuthorization: true,
  forwardCookies: [],
}

void test('only named headers go upstream, and the server’s win', (t) => {
  const caller = lines(
    ['Accept', 'a'], ['accept', 'b'], ['Authorization', 'Bearer caller'], ['X-Service', 'mine'], ['x-app', '1'], ['X-App', '2'],
    ['Cookie', 'c'], ['X-User-Id', 'bob'], ['x_service', 'mine'], ['x-forwarded-for', '1.2.3.4'], ['Connection', 'authorization, x-service'],
    ['Host', 'evil'], ['accept-encoding', 'gzip'], ['x-cpki-user-id', 'bob'], ['Content-Type', 'text/plain'],
  ) // oxfmt-ignore
  t.same(upstreamHeaders(caller, rules, { 'content-type': 'application/json' }), {
    accept: 'a, b',
    'x-app': '1, 2',
    'accept-encoding': 'identity',
    'content-type': 'application/json',
    'x-service': 's',
    authorization: 'Bearer service',
  })
  const plain = { server: {}, forward: [], forwardAuthorization: true, forwardCookies: [] }
  t.equal(upstreamHeaders(caller, plain, {})['authorization'], 'Bearer caller')
  t.notOk('authorization' in upstreamHeaders(caller, { ...plain, forwardAuthorization: false }, {}))
  t.end()
})

void test('a few names pass without being configured', (t) => {
  const none = { server: {}, forward: [], forwardAuthorization: false, forwardCookies: [] }
  const kept = Object.fromEntries(BUILT_IN.map((name) => [name, `a ${name}`]))
  const caller = lines(...BUILT_IN.map((name): [string, string] => [capital(name), `a ${name}`]))
  t.strictSame(upstreamHeaders(caller, none, {}), { ...kept, 'accept-encoding': 'identity' })
  t.strictSame(upstreamHeaders(lines(), { ...none, forwardAuthorization: true }, {}), { 'accept-encoding': 'identity' })
  for (const name of [...BUILT_IN, 'authorization', 'content-type']) {
    t.ok(passesAnyway(name), name)
    t.ok(passesAnyway(capital(name)), capital(name))
  }
  for (const name of ['x-app', 'cookie', '']) t.notOk(passesAnyway(name), name)
  t.end()
})

void test('Authorization and Content-Type follow rules of their own, even where forwardHeaders names them', (t) => {
  const forward = ['authorization', 'content-type', 'x-app']
  const caller = lines(['Authorization', 'Bearer caller'], ['Content-Type', 'text/plain'], ['X-App', '1'])
  t.strictSame(upstreamHeaders(caller, { server: {}, forward, forwardAuthorization: false, forwardCookies: [] }, {}), {
    'x-app': '1',
    'accept-encoding': 'identity',
  })
  t.end()
})

void test('lines that two readers could read differently are refused', (t) => {
  t.equal(headerFault(lines(HOST, ['Authorization', 'Bearer a'], ['Accept', 'a'], ['accept', 'b'])), null)
  t.match(headerFault(lines(['Authorization', 'Bearer a'], ['authorization', 'Bearer b'])), { reason: 'authorization-repeated' })
  t.match(headerFault(lines(['authorization', 'Bearer a, Bearer b'])), { reason: 'authorization-repeated' })
  // Fields that are no lists (RFC 9110 §5.3).
  const singular = ['Host', 'Content-Type', 'Content-Length', 'Origin', 'Transfer-Encoding', 'User-Agent', 'Content-Encoding', 'Traceparent', 'Access-Control-Request-Method'] // oxfmt-ignore
  for (const name of singular)
    t.match(headerFault(lines([name, 'chunked'], [name.toLowerCase(), 'chunked'])), { reason: 'header-repeated' }, name)
  for (const coding of ['gzip, chunked', 'identity', 'chunked, chunked', 'xchunked']) {
    t.match(headerFault(lines(HOST, ['Transfer-Encoding', coding])), { reason: 'transfer-coding-unsupported' }, coding)
  }
  for (const coding of ['chunked', 'Chunked']) t.equal(headerFault(lines(HOST, ['Transfer-Encoding', coding])), null, coding)
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
  t.match(headerFault(lines(HOST, ['Expect', '100-'], ['Expect', 'continue'])), { reason: 'expectation-unsupported' })
  t.equal(headerFault(lines(HOST, ['Expect', '100-Continue'])), null)
  t.end()
})

void test('forwardHeaders can’t name what a caller must not choose', (t) => {
  const faults: Readonly<Record<string, readonly string[]>> = {
    'is not a header name, or has a "_"': ['x_a', 'a b', '', 'a:b', 'é', 'x-app\n', '@x', 'x@'],
    'ends at every hop': HOP_BY_HOP,
    'is never taken from a caller': ['host', 'content-length', 'content-encoding', 'cookie', 'forwarded', 'x-real-ip', 'expect', 'range', 'accept-encoding'], // oxfmt-ignore
    'asks for an answer out of a cache': ['if-none-match', 'if-modified-since', 'if-match'],
    'is reserved': ['x-forwarded', 'x-forwarded-for', 'x-forwarded-user', 'x-original-url', 'x-original', 'x-rewrite-url', 'x-http-method-override', 'x-http-method', 'x-http-methods', 'x-cpki-user-id', 'x-threadwarden-user', 'x-threadwarden'], // oxfmt-ignore
    'is set by upstream.headers': ['x-service', 'x-tenant'],
  }
  for (const [fault, names] of Object.entries(faults)) {
    for (const name of names) {
      t.equal(forwardingFault(name, ['X-Service', 'x-tenant']), fault, name)
      t.equal(forwardingFault(capital(name), ['X-Service', 'x-tenant']), fault, capital(name))
    }
  }
  const fine = ['x-app', 'X-Tenants', 'x-copilotcloud-public-api-key', 'x-forwardedness', 'app-x-forwarded-for', 'my-x-http-method', 'x-if-match', "a!#$%&'*+-.^`|~0"] // oxfmt-ignore
  for (const name of fine) t.equal(forwardingFault(name, ['X-Service', 'x-tenant']), null, name)
  t.end()
})

void test('upstream.headers can’t set what the gateway sets itself', (t) => {
  const own = [...HOP_BY_HOP, 'host', 'content-length', 'content-type', 'content-encoding', 'accept-encoding', 'expect']
  for (const name of own) {
    t.equal(settingFault(name), 'is set by the gateway itself', name)
    t.equal(settingFault(capital(name)), 'is set by the gateway itself', capital(name))
  }
  for (const name of ['authorization', 'Cookie', 'x-service', 'user-agent', 'x-forwarded-for'])
    t.equal(settingFault(name), null, name)
  t.end()
})

void test('answers are told apart by status and type', (t) => {
  const kinds = {
    stream: ['text/event-stream; charset=utf-8', 'Text/Event-Stream', 'application/vnd.ag-ui.event+proto', ' text/event-stream'],
    html: ['text/html', 'Text/HTML; charset=utf-8', 'application/xhtml+xml', ' text/html'],
    plain: ['application/json', 'application/json; as=text/html', 'text/plain; as=text/event-stream', 'text/htmlx', 'text/event-streams', ''],
  } // oxfmt-ignore
  for (const [kind, types] of Object.entries(kinds)) {
    for (const type of types) {
      for (const status of [200, 299, 400, 500]) t.equal(answerKind(status, { 'content-type': type }), kind, `${status} ${type}`)
    }
  }
  for (const status of [300, 301, 302, 304, 307, 399]) {
    t.equal(answerKind(status, {}), 'redirect', String(status))
    t.equal(answerKind(status, { 'content-type': 'text/html' }), 'redirect', `a page, ${status}`)
  }
  t.equal(answerKind(204, {}), 'plain', 'no type')
  t.end()
})

void test('what ends at this hop, opens another origin, redirects or lets caches keep it is dropped from answers', (t) => {
  // oxfmt-ignore
  const dropped = [
    ...HOP_BY_HOP, 'x-hop', 'access-control-allow-origin', 'access-control-x',
    'location', 'refresh', 'x-request-id', 'x-sendfile', 'x-lighttpd-send-file',
    'cache-control', 'etag', 'age', 'expires', 'last-modified', 'pragma', 'warning', 'surrogate-control', 'surrogate-key', 'edge-control',
    'cdn-cache-control', 'cloudflare-cdn-cache-control', 'x-accel-redirect', 'x-accel-buffering', 'x-accel-expires',
  ]
  const kept = {
    'content-type': 'application/json', 'content-length': '2', 'content-encoding': 'gzip', 'x-more': ['a', 'b'],
    'retry-after': '1', 'x-access-control-a': '1', 'x-location': '1', 'cdn-cache-control-x': '1', 'my-x-accel-x': '1',
  } // oxfmt-ignore
  const headers = {
    ...kept,
    ...Object.fromEntries(dropped.map((name) => [name, 'x'])),
    connection: 'keep-alive , X-Hop',
    'x-none': undefined,
  }
  t.strictSame(forwardedAnswerHeaders(headers, 'plain'), { ...kept, 'cache-control': 'private, no-store' })
  const streamed = Object.entries(kept).filter(([name]) => name !== 'content-length')
  t.strictSame(forwardedAnswerHeaders(headers, 'stream'), {
    ...Object.fromEntries(streamed),
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  })
  t.strictSame(forwardedAnswerHeaders({}, 'plain'), { 'cache-control': 'private, no-store' })
  t.not(forwardedAnswerHeaders(headers, 'plain')['x-more'], kept['x-more'], 'a list of its own: what is added to it stays here')
  t.end()
})

void test('JSON is application/json, with no charset but UTF-8', (t) => {
  const taken = ['application/json', 'Application/JSON', 'application/json; charset=utf-8', 'application/json  ;  Charset="UTF-8" ', 'application/json;charset=utf-8', ' application/json\t', 'application/json '] // oxfmt-ignore
  for (const type of taken) t.ok(isJsonType(type), type)
  const refused = ['', 'text/plain', 'application/json; charset=utf-16', 'application/json; charset=utf-7', 'application/json; x=1', 'application/json;', 'application/jsonx', 'text/plain, application/json', 'application/json, text/plain', 'application/json; charset=utf-8; charset=utf-7', 'application/json; charset="utf-8'] // oxfmt-ignore
  for (const type of refused) t.notOk(isJsonType(type), type)
  t.end()
})

void test('multipart has a boundary that can be no media type, and is written anew', (t) => {
  const longest = 'a'.repeat(70)
  const rewritten: readonly (readonly [string, string])[] = [
    ['multipart/form-data; boundary=----WebKitFormBoundaryABC123', '----WebKitFormBoundaryABC123'],
    ['Multipart/Form-Data;BOUNDARY=a', 'a'],
    [' multipart/form-data  ;  boundary=a\t', 'a'],
    ["multipart/form-data; boundary=a'+_-.1", "a'+_-.1"],
    ['multipart/form-data; boundary="a b:c"', '"a b:c"'],
    ['multipart/form-data; boundary="a"', '"a"'],
    [`multipart/form-data; boundary=${longest}`, longest],
    [`multipart/form-data; boundary="${longest}"`, `"${longest}"`],
  ]
  for (const [type, boundary] of rewritten) t.equal(multipartType(type), `multipart/form-data; boundary=${boundary}`, type)
  const refused = ['multipart/form-data', 'multipart/mixed; boundary=a', 'x-multipart/form-data; boundary=a', 'multipart/form-data; boundary=a/b', 'multipart/form-data; boundary="application/json"', 'multipart/form-data; boundary=', 'multipart/form-data; boundary=""', `multipart/form-data; boundary=a${longest}`, `multipart/form-data; boundary="a${longest}"`, 'multipart/form-data; boundary="a "', 'multipart/form-data; boundary=a b', 'multipart/form-data; boundary=a; boundary=b', 'multipart/form-data; boundary="a', 'multipart/form-data; x=application/json; boundary=a'] // oxfmt-ignore
  for (const type of refused) t.equal(multipartType(type), null, type)
  t.end()
})

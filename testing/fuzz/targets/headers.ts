/**
 * Heads of requests and of answers. The input is what an operator forwards, a line, and then lines of a head. Whatever that is,
 * reserved names come from no caller, the server's values arrive once, and nothing arrives that has two readings.
 */
import assert from 'node:assert/strict'
import {
  BUILT_IN,
  answerKind,
  forwardedAnswerHeaders,
  forwardingFault,
  headerFault,
  headerLines,
  isJsonType,
  settingFault,
  upstreamHeaders,
  type HeaderLines,
} from '../../../src/core/wire/headers.ts'

// oxfmt-ignore
export const words = [
  '\n', ': ', ',', 'host: x', 'authorization: Bearer a', 'Authorization', 'content-type: application/json', '; charset=utf-8', 'transfer-encoding: chunked',
  'content-length: 1', 'connection: ', 'keep-alive', 'x-tenant', 'X-Tenant: b', 'x_tenant', 'x-service-token', 'X-SERVICE-TOKEN: caller', 'cookie', 'x-forwarded-for',
  'x-cpki-user-id', 'x-cpki_user_id', 'x-threadwarden-user', 'x-http-method-override', 'x-original-url', 'x-rewrite-url', 'x-real-ip', 'forwarded', 'expect: 100-continue',
  'traceparent', 'tracestate', 'user-agent', 'accept', 'accept-language', 'accept-encoding', 'te', 'trailer', 'upgrade', 'http2-settings', 'proxy-authorization', 'range', 'if-match',
  'cache-control', 'cdn-cache-control', 'x-accel-redirect', 'access-control-allow-origin', 'text/event-stream', 'text/html', 'location', 'etag', 'set-cookie', '__proto__', 'constructor', 'x-request-id',
]

// oxfmt-ignore
export const seeds = [
  'x-a,x-tenant\nhost: x\nauthorization: Bearer a.b.c\ncontent-type: application/json; charset=utf-8\naccept: */*\nx-a: 1\nX-A: 2\nx-tenant: caller\nX-Service-Token: caller',
  'x-request-id,content-type,accept-encoding,authorization\nhost: x\nx-request-id: caller\ncontent-type: text/html\naccept-encoding: br\nAuthorization: Basic a',
  'x-cpki-user-id,cookie,x_a,Host,X-Forwarded-For,x-original-url,x-http-method-override,x-threadwarden-user,if-match\nhost: x\nX-CPKI-User-Id: a\ncookie: c\nx_a: 1\nx-forwarded-for: 1\nx-original-url: /\nx-http-method-override: DELETE\nx-threadwarden-user: a\nif-match: a',
  'connection,te,upgrade,content-length,range,expect,x-real-ip,forwarded\nhost: x\nconnection: close, host\nte: trailers\nupgrade: h2c\ncontent-length: 0\nrange: a\nx-real-ip: 1\nforwarded: for=1',
  '\nhost: x\nauthorization: a\nAuthorization: b', '\nhost: x\nauthorization: a, b', '\nhost: a\nHost: b', '\nhost: x\ncontent-type: a\ncontent-type: b', '\nhost: x\ntransfer-encoding: gzip, chunked', '\nhost: x\ntransfer-encoding: Chunked\nexpect: 100-Continue', '\nhost: x\nexpect: x', '\naccept: a',
  '\nhost: x\nuser-agent: a\nuser-agent: b', '\nhost: x\ntraceparent: a\ntraceparent: b', '__proto__,constructor\nhost: x\n__proto__: a\nconstructor: b', 'x-b\nhost: x\nx-b: \xe9\xff',
  '\nhost: x\ncontent-type: text/event-stream\netag: 1\ncache-control: public\nset-cookie: a\nset-cookie: b\nconnection: Set-Cookie\ncontent-length: 1\ncdn-cache-control: a\nx-accel-redirect: /', '\nhost: x\ncontent-type: text/html\nlocation: /\naccess-control-allow-origin: *',
]

const SERVER = { 'x-service-token': 'server', 'x-tenant': 'server' } as const
const OWN = { 'content-type': 'application/json', 'x-request-id': 'own' } as const
/** Field names and values as an HTTP parser lets them through (RFC 9110 §5.1, §5.5). */
const LINE = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*$/
/** What never comes from a caller: of this connection, of what stands before the gateway, or of who somebody is. */
const RESERVED =
  /_|^(?:connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|http2-settings|host|content-length|content-encoding|cookie|forwarded|expect|range|if-.*|x-real-ip|x-(?:forwarded|original|rewrite|cpki|threadwarden)(?:-.*)?|x-http-method.*)$/
const ONCE =
  /^(?:authorization|content-type|content-length|content-encoding|transfer-encoding|host|origin|user-agent|traceparent)$/

export function examine(input: Buffer): void {
  const [operator = '', ...head] = input.toString('latin1').split(/\r?\n/)
  const raw = head.flatMap((line) => LINE.exec(line)?.slice(1) ?? [])
  const lines = headerLines(raw)
  assert.equal([...lines.values()].flat().length * 2, raw.length, 'no line is lost')
  checkFault(lines)
  if (headerFault(lines) === null) {
    const names = operator.split(',').map((name) => name.toLowerCase())
    // The server's win also where a configuration was not checked against them.
    for (const server of [Object.keys(SERVER), []]) {
      const forward = names.filter((name) => forwardingFault(name, server) === null)
      for (const forwardAuthorization of [true, false]) checkRequest(lines, forward, forwardAuthorization)
    }
  }
  checkAnswer(lines)
  checkServerNames(operator.split(','))
}

/** What is let through has one reading, whichever line somebody takes. */
function checkFault(lines: HeaderLines): void {
  const refusal = headerFault(lines)
  if (refusal !== null) {
    assert.equal(refusal.code, 'header-malformed')
    return
  }
  for (const [name, values] of lines) if (ONCE.test(name)) assert.equal(values.length, 1, name)
  assert.ok(lines.has('host'))
  assert.doesNotMatch(String(lines.get('authorization')), /,/, 'one credential')
  assert.match(String(lines.get('transfer-encoding') ?? 'chunked'), /^chunked$/i)
  const type = lines.get('content-type')?.[0] ?? ''
  if (isJsonType(type)) assert.equal(type.toLowerCase().split(';')[0]?.trim(), 'application/json')
}

function checkRequest(lines: HeaderLines, forward: readonly string[], forwardAuthorization: boolean): void {
  const headers = upstreamHeaders(lines, { server: SERVER, forward, forwardAuthorization, forwardCookies: [] }, { ...OWN })
  assert.equal(Object.getPrototypeOf(headers), Object.prototype, 'no name is obeyed')
  const may = [...BUILT_IN, ...forward, ...(forwardAuthorization ? ['authorization'] : [])]
  for (const [name, value] of Object.entries(headers)) {
    assert.equal(name, name.toLowerCase(), 'one spelling of each name')
    assert.doesNotMatch(value, /[\0-\x08\n-\x1f\x7f]/, 'no controls')
    const set: Readonly<Record<string, string>> = { 'accept-encoding': 'identity', ...OWN, ...SERVER }
    if (Object.hasOwn(set, name)) assert.equal(value, set[name], `${name} is the gateway's`)
    else {
      assert.doesNotMatch(name, RESERVED)
      assert.ok(may.includes(name), `${name} passes`)
      assert.equal(value, lines.get(name)?.join(', '), `${name} is the caller's`)
    }
  }
  for (const name of Object.keys({ ...OWN, ...SERVER })) assert.ok(Object.hasOwn(headers, name), `${name} is there`)
}

/** The same lines as an answer of the upstream's. */
function checkAnswer(lines: HeaderLines): void {
  const upstream = Object.fromEntries([...lines].map(([name, values]) => [name, values.length === 1 ? values[0] : values]))
  const kind = answerKind(200, upstream)
  const named = (lines.get('connection') ?? []).join(',').toLowerCase()
  const kept = forwardedAnswerHeaders(upstream, kind)
  for (const [name, value] of Object.entries(kept)) {
    if (name === 'cache-control' || name === 'x-accel-buffering') continue
    assert.deepEqual(value, upstream[name], `${name} is the upstream's`)
    const connection = named.split(',').map((one) => one.trim())
    assert.ok(!connection.includes(name), `${name} ends here by Connection`)
    assert.doesNotMatch(
      name,
      /^(?:connection|keep-alive|te|trailer|transfer-encoding|upgrade|access-control-.*|x-accel-.*|.*cdn-cache-control|location|refresh|etag|age|expires)$/,
    )
  }
  assert.match(String(kept['cache-control']), /^(?:private, no-store|no-cache, no-transform)$/)
}

/** What upstream.headers may set is nothing that frames or routes a request. */
function checkServerNames(names: readonly string[]): void {
  for (const name of names) {
    if (settingFault(name) !== null) continue
    assert.doesNotMatch(
      name,
      /^(?:connection|keep-alive|transfer-encoding|upgrade|te|trailer|host|content-length|content-type|content-encoding|accept-encoding|expect)$/i,
    )
  }
}

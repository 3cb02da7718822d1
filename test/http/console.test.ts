/** The console on the admin listener: who gets in, and what a page of somebody else can't do with an operator's browser. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { startIssuer } from '../../examples/issuer.ts'
import { CONSOLE_CLIENT, walk } from '../../examples/sign-in.ts'
import { makeSessions } from '../../src/http/admin/console/sessions.ts'
import { freePort } from '../../testing/support/free-port.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { gated, type GatedUpstream } from '../../testing/support/gated.ts'
import { head, sendRaw } from '../../testing/support/raw.ts'
import { ROOT } from '../suites/suites.ts'

const CREDENTIAL = 'c'.repeat(40)

interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

interface Asked {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: object
  readonly cookie?: string
}

interface Consoled extends GatedUpstream {
  readonly url: string
  readonly ask: (path: string, asked?: Asked) => Promise<Answer>
  /** The cookie of a session that the credential began. */
  readonly signIn: (headers?: Readonly<Record<string, string>>) => Promise<string>
}

async function consoled(t: Test, settings: object | null = {}): Promise<Consoled> {
  const admin = { port: 0, credential: CREDENTIAL, ...(settings === null ? {} : { console: settings }) }
  const gate = await gated(t, undefined, { config: { admin } })
  const url = gate.gateway.adminUrl ?? ''
  const ask: Consoled['ask'] = async (path, { method, headers = {}, body, cookie } = {}) => {
    const response = await fetch(`${url}${path}`, {
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      redirect: 'manual',
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(cookie === undefined ? {} : { cookie }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  t.teardown(() => {
    const log = JSON.stringify(gate.gateway.lines)
    if (log.includes(CREDENTIAL)) throw new Error('a log line holds the credential')
  })
  return {
    ...gate,
    url,
    ask,
    async signIn(headers = {}) {
      return cookieOf(await ask('/console/session', { body: { credential: CREDENTIAL }, headers }))
    },
  }
}

function cookieOf({ headers }: Answer): string {
  const [line = ''] = headers.getSetCookie()
  return line.slice(0, line.indexOf(';'))
}

void test('it is off unless it is configured', async (t) => {
  const { ask } = await consoled(t, null)
  for (const path of ['/console', '/console/main.js', '/console/session']) t.equal((await ask(path)).status, 401, path)
  t.equal((await ask('/console/session', { body: { credential: CREDENTIAL } })).status, 401)
})

void test('the page confines itself, and asks no other origin', async (t) => {
  const { ask } = await consoled(t)
  const page = await ask('/console')
  t.equal(page.status, 200)
  const csp = page.headers.get('content-security-policy') ?? ''
  for (const part of [
    "default-src 'none'",
    "style-src 'self'",
    "connect-src 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ])
    t.ok(csp.includes(part), part)
  t.notMatch(csp, /unsafe|\*|https?:/)
  t.equal(page.headers.get('x-frame-options'), 'DENY')
  t.equal(page.headers.get('cache-control'), 'no-store')
  const files = [...page.text.matchAll(/(?:src|href)="([^"]+)"|":"([^"]+)"/g)].map(([, one, other]) => one ?? other ?? '')
  t.ok(files.length >= 6)
  for (const file of files) {
    t.match(file, /^\/console\/[\w-]+\.(?:js|css|svg)$/)
    const answer = await ask(file)
    t.equal(answer.status, 200, file)
    t.equal(answer.headers.get('x-content-type-options'), 'nosniff')
  }
  for (const name of readdirSync(`${ROOT}src/console`)) {
    const outside = readFileSync(`${ROOT}src/console/${name}`, 'utf8').match(/https?:\/\/[^\s"']+/g) ?? []
    t.same(
      outside.filter((one) => one !== 'http://www.w3.org/2000/svg'),
      [],
      name,
    )
  }
  for (const path of [
    '/console/',
    '/console/../status',
    '/console/%2e%2e/status',
    '/console/api.tsx',
    '/console?x=1',
    '/console/x.js',
  ])
    t.not((await ask(path)).status, 200, path)
})

void test('the credential begins a session, which the API accepts, until it is ended', async (t) => {
  const { ask, signIn, gateway } = await consoled(t)
  for (const body of [{ credential: 'x'.repeat(40) }, { credential: '' }]) {
    const wrong = await ask('/console/session', { body })
    t.same([wrong.status, wrong.headers.getSetCookie()], [401, []])
  }
  for (const body of [{}, { credential: CREDENTIAL, more: 1 }, { credential: [CREDENTIAL] }])
    t.equal((await ask('/console/session', { body })).status, 400)
  const answer = await ask('/console/session', { body: { credential: CREDENTIAL } })
  t.match(answer.headers.getSetCookie(), [/^threadwarden=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/])
  const cookie = await signIn()
  t.equal((await ask('/status', { cookie })).status, 200)
  t.same(JSON.parse((await ask('/console/session', { cookie })).text), {
    operator: { name: 'credential', role: 'operator' },
    openId: false,
  })
  t.equal((await ask('/status')).status, 401)
  t.equal((await ask('/status', { cookie: 'threadwarden=' })).status, 401)
  t.equal((await ask('/status', { cookie: `${cookie}x` })).status, 401)
  const revoked = await ask('/revocations', { body: { tokenId: 'j-1' }, cookie })
  t.equal(revoked.status, 201)
  t.match(
    gateway.lines.filter(({ msg, action }) => msg === 'admin' && action === 'revoke'),
    [{ operator: 'credential', target: 'token:j-1', outcome: 'done' }],
  )
  t.equal((await ask('/console/session', { method: 'DELETE', cookie })).status, 204)
  t.equal((await ask('/status', { cookie })).status, 401)
  t.notOk(JSON.stringify(gateway.lines).includes(cookie.split('=')[1] ?? ''), 'no session is in the log')
})

void test('a session ends when the credential that began it is replaced', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const credentialFile = join(folder, 'credential')
  writeFileSync(credentialFile, CREDENTIAL)
  const { gateway } = await gated(t, undefined, { config: { admin: { port: 0, credentialFile, console: {} } } })
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ credential: CREDENTIAL })
  const begun = await fetch(`${gateway.adminUrl}/console/session`, { method: 'POST', headers, body })
  const cookie = begun.headers.getSetCookie()[0]?.split(';')[0] ?? ''
  const status = async (): Promise<number> => (await fetch(`${gateway.adminUrl}/status`, { headers: { cookie } })).status
  t.equal(await status(), 200)
  writeFileSync(credentialFile, 'd'.repeat(40))
  t.equal(await status(), 401)
})

void test('a page of another origin begins no sign-in at the provider', async (t) => {
  const { ask } = await withIssuer(t)
  t.equal((await ask('/console/sign-in', { headers: { 'sec-fetch-site': 'cross-site' } })).status, 403)
  t.equal((await ask('/console/sign-in', { headers: { 'sec-fetch-site': 'none' } })).status, 303)
})

void test('a session id that another user chose or knew is never used (session fixation)', async (t) => {
  const { ask } = await consoled(t)
  const chosen = `threadwarden=${'A'.repeat(43)}`
  const first = cookieOf(await ask('/console/session', { body: { credential: CREDENTIAL }, cookie: chosen }))
  t.not(first, chosen)
  t.equal((await ask('/status', { cookie: chosen })).status, 401)
  const second = cookieOf(await ask('/console/session', { body: { credential: CREDENTIAL }, cookie: first }))
  t.not(second, first)
  t.equal((await ask('/status', { cookie: first })).status, 401, 'the session before is over')
  t.equal((await ask('/status', { cookie: second })).status, 200)
})

void test('a page of another origin does nothing with the session of an operator (CSRF)', async (t) => {
  const { ask, signIn, url, gateway } = await consoled(t)
  const cookie = await signIn()
  const own = new URL(url)
  const body = { user: 'corp:alice' }
  const foreign = [
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: `http://127.0.0.1:${Number(own.port) + 1}` },
    { origin: url.replace('127.0.0.1', 'localhost') },
    { origin: url.replace('http:', 'https:') },
    { origin: `${url}.evil.example` },
    { origin: url, 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
  ]
  for (const headers of foreign) {
    const what = JSON.stringify(headers)
    t.ok([401, 403].includes((await ask('/revocations', { body, cookie, headers })).status), what)
    t.ok([401, 403].includes((await ask('/status', { cookie, headers })).status), what)
    t.equal((await ask('/console/session', { body: { credential: CREDENTIAL }, headers })).status, 403, what)
    t.equal((await ask('/console/session', { method: 'DELETE', cookie, headers })).status, 403, what)
  }
  t.equal((await ask('/revocations', { cookie })).text, '{"revocations":[]}', 'nothing was revoked')
  for (const headers of [{ 'content-type': 'text/plain' }, { 'content-type': 'application/x-www-form-urlencoded' }])
    t.equal((await ask('/revocations', { body, cookie, headers })).status, 415, 'what a form can send is refused')
  t.equal((await ask('/revocations', { body, cookie, headers: { origin: url, 'sec-fetch-site': 'same-origin' } })).status, 201)
  t.ok(gateway.lines.some(({ msg, outcome }) => msg === 'admin' && outcome === 'not-allowed'))
})

void test('a name that is bound to the address afterwards reaches nothing (DNS rebinding)', async (t) => {
  const { signIn, url } = await consoled(t)
  const cookie = await signIn()
  const { port } = new URL(url)
  const as = async (host: string, path: string): Promise<number> => {
    const text = await sendRaw(url, head(`GET ${path} HTTP/1.1`, `Host: ${host}`, `Cookie: ${cookie}`, 'Connection: close'))
    return Number(text.slice(9, 12))
  }
  for (const host of [
    'evil.example',
    `evil.example:${port}`,
    `127.0.0.1.evil.example:${port}`,
    `localhost.evil.example`,
    '127.0.0.1@evil.example',
    '',
    `127.0.0.1:${port}\r\nHost: evil.example`,
  ]) {
    t.equal(await as(host, '/status'), 401, host)
    t.not(await as(host, '/console'), 200, host)
    t.not(await as(host, '/console/main.js'), 200, host)
  }
  t.equal(await as(`127.0.0.1:${port}`, 'http://evil.example/status'), 404, 'an absolute form')
  for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`, 'localhost'])
    t.equal(await as(host, '/status'), 200, host)
})

void test('with a url, only its origin is the console’s, and cookies need TLS', async (t) => {
  const { ask, url } = await consoled(t, { url: 'https://ops.example.com' })
  const headers = { host: 'ops.example.com', origin: 'https://ops.example.com' }
  // fetch sets the Host itself.
  const raw = async (lines: readonly string[], body: string): Promise<string> =>
    sendRaw(url, head(...lines, 'Content-Type: application/json', `Content-Length: ${body.length}`, 'Connection: close') + body)
  const credential = JSON.stringify({ credential: CREDENTIAL })
  const answer = await raw(['POST /console/session HTTP/1.1', `Host: ${headers.host}`, `Origin: ${headers.origin}`], credential)
  t.match(answer, /^HTTP\/1\.1 204 .*set-cookie: __Host-threadwarden=[\w-]{43}; Path=\/; HttpOnly; Secure; SameSite=Lax\r\n/s)
  t.equal((await ask('/console')).status, 403, 'a loopback address is another origin')
  t.match(
    await raw(['POST /console/session HTTP/1.1', `Host: ${headers.host}`, 'Origin: http://ops.example.com'], credential),
    /^HTTP\/1\.1 403 /,
  )
})

void test('programs use the credential as before, and pages of other origins cannot', async (t) => {
  const { ask, signIn, url } = await consoled(t)
  const cookie = await signIn()
  const authorization = `Bearer ${CREDENTIAL}`
  t.equal((await ask('/status', { headers: { authorization } })).status, 200)
  t.equal((await ask('/status', { headers: { authorization, origin: url } })).status, 403)
  t.equal(
    (await ask('/status', { cookie, headers: { authorization: 'Bearer wrong' } })).status,
    401,
    'a wrong credential is not replaced',
  )
})

void test('a session ends after half an hour without a request, after eight hours, for the eleventh of one operator, and with its credential', (t) => {
  let now = 0
  const sessions = makeSessions(false, () => now)
  const set: string[] = []
  const reply = { setCookie: (_name: string, value: string) => void set.push(value), clearCookie: () => {} } as never
  const request = (id?: string) => ({ cookies: { threadwarden: id } }) as never
  const begin = (): string => {
    sessions.begin(request(), reply, { name, role: 'operator' }, () => isValid)
    return set.at(-1) ?? ''
  }
  let name = 'credential'
  let isValid = true
  const first = begin()
  now += 29 * 60_000
  t.not(sessions.of(request(first)), null)
  now += 30 * 60_000
  t.equal(sessions.of(request(first)), null)
  const second = begin()
  for (const until = now + 8 * 3600_000 - 60_000; now < until; now += 60_000) t.not(sessions.of(request(second)), null)
  now += 60_000
  t.equal(sessions.of(request(second)), null)
  const others = begin()
  name = 'openid:vera'
  const many = Array.from({ length: 11 }, begin)
  t.equal(sessions.of(request(many[0])), null)
  t.not(sessions.of(request(many[1])), null)
  t.equal(new Set(many).size, 11)
  t.not(sessions.of(request(others)), null, 'one operator signs no other out')
  isValid = false
  t.equal(sessions.of(request(others)), null, 'a replaced credential ends what it began')
  t.end()
})

/** A console whose operators sign in at the real provider of the examples. */
async function withIssuer(
  t: Test,
): Promise<Consoled & { readonly begin: () => Promise<{ readonly at: URL; readonly cookie: string }> }> {
  const issuer = await startIssuer()
  t.teardown(() => issuer.close())
  const port = await freePort()
  const openId = {
    issuer: issuer.issuer,
    clientId: CONSOLE_CLIENT.id,
    rolesClaim: '/role',
    operators: ['operator'],
    viewers: ['viewer', 'member'],
  }
  const gate = await gated(t, undefined, {
    config: { admin: { port, credential: CREDENTIAL, console: { url: `http://127.0.0.1:${port}`, openId } } },
  })
  const url = gate.gateway.adminUrl ?? ''
  const ask: Consoled['ask'] = async (path, { method, headers = {}, body, cookie } = {}) => {
    const response = await fetch(path.startsWith('http') ? path : `${url}${path}`, {
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      redirect: 'manual',
      headers: {
        ...(cookie === undefined ? {} : { cookie }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  return {
    ...gate,
    url,
    ask,
    signIn: async () => '',
    async begin() {
      const answer = await ask('/console/sign-in')
      return { at: new URL(answer.headers.get('location') ?? ''), cookie: cookieOf(answer) }
    },
  }
}

const isCallback = (url: string): boolean => url.includes('/console/callback?')

void test('an operator signs in at the provider, with PKCE, and by role', async (t) => {
  const { ask, begin, gateway } = await withIssuer(t)
  const { at, cookie } = await begin()
  t.equal(at.searchParams.get('code_challenge_method'), 'S256')
  for (const name of ['state', 'nonce', 'code_challenge']) t.ok((at.searchParams.get(name) ?? '').length >= 43, name)
  const back = await walk(at, 'olga', isCallback)
  const answer = await ask(`${back.href}&authuser=0`, { cookie })
  t.same([answer.status, answer.headers.get('location')], [303, '/console'])
  const session = answer.headers.getSetCookie().find((line) => line.startsWith('threadwarden=')) ?? ''
  const olga = session.slice(0, session.indexOf(';'))
  t.same(JSON.parse((await ask('/console/session', { cookie: olga })).text), {
    operator: { name: 'openid:olga', role: 'operator' },
    openId: true,
  })
  t.equal((await ask('/revocations', { body: { tokenId: 'j-1' }, cookie: olga })).status, 201)
  t.match(
    gateway.lines.filter(({ msg, action }) => msg === 'admin' && action === 'revoke'),
    [{ operator: 'openid:olga', outcome: 'done' }],
  )
  const again = await ask(back.href, { cookie })
  t.equal(again.headers.get('location'), '/console#failed', 'an answer of the provider counts once')

  // A viewer: every change is refused, also by the forms that change nothing elsewhere.
  const bobs = await begin()
  const bob = await ask((await walk(bobs.at, 'bob', isCallback)).href, { cookie: bobs.cookie })
  const viewer = cookieOf({
    ...bob,
    headers: new Headers(
      bob.headers
        .getSetCookie()
        .filter((line) => line.startsWith('threadwarden='))
        .map((line) => ['set-cookie', line]),
    ),
  })
  t.equal((await ask('/status', { cookie: viewer })).status, 200)
  t.equal((await ask('/explain', { body: { method: 'GET', target: '/' }, cookie: viewer })).status, 200)
  for (const [method, path, body] of [
    ['POST', '/revocations', { tokenId: 'j-2' }],
    ['POST', '/reload', undefined],
    ['DELETE', '/streams/x', undefined],
    ['POST', '/threads/t1/owner', { user: 'corp:bob' }],
    ['DELETE', '/threads/t1/owner', undefined],
    ['POST', '/threads/t1/grants', { user: 'corp:bob', right: 'read' }],
  ] as const)
    t.equal(
      (await ask(path, { method, ...(body === undefined ? {} : { body }), cookie: viewer })).status,
      403,
      `${method} ${path}`,
    )
})

void test('an answer of the provider that belongs to another browser, or was changed, begins no session', async (t) => {
  const { ask, begin, gateway } = await withIssuer(t)
  const mine = await begin()
  const other = await begin()
  const back = await walk(mine.at, 'olga', isCallback)
  const changed = new URL(back)
  changed.searchParams.set('state', 'x')
  const otherState = new URL(back)
  otherState.searchParams.set('state', other.at.searchParams.get('state') ?? '')
  for (const [what, href, cookie] of [
    ['without the cookie', back.href, undefined],
    ['with that of another sign-in', back.href, other.cookie],
    ['with another state', changed.href, mine.cookie],
  ] as const) {
    const answer = await ask(href, cookie === undefined ? {} : { cookie })
    t.equal(answer.headers.get('location'), '/console#failed', what)
    t.notOk(
      answer.headers.getSetCookie().some((line) => line.startsWith('threadwarden=')),
      what,
    )
  }
  t.equal((await ask(back.href, { cookie: mine.cookie })).headers.get('location'), '/console#failed', 'a sign-in has one answer')
  // A code of one sign-in with the state of another: the verifier does not fit.
  const third = await begin()
  otherState.searchParams.set('state', third.at.searchParams.get('state') ?? '')
  t.equal((await ask(otherState.href, { cookie: third.cookie })).headers.get('location'), '/console#failed')
  t.ok(gateway.lines.filter(({ msg }) => msg === 'a sign-in to the console failed').length >= 4)
  const log = JSON.stringify(gateway.lines)
  t.notOk(log.includes(back.searchParams.get('code') ?? ''), 'no code is in the log')
})

void test('a user without a role gets no session, and a provider that is down is told', async (t) => {
  const issuer = await startIssuer()
  const port = await freePort()
  const openId = { issuer: issuer.issuer, clientId: CONSOLE_CLIENT.id, rolesClaim: '/role', operators: ['operator'] }
  const { gateway } = await gated(t, undefined, {
    config: { admin: { port, credential: CREDENTIAL, console: { url: `http://127.0.0.1:${port}`, openId } } },
  })
  const go = (href: string, cookie = '') => fetch(href, { redirect: 'manual', headers: { cookie } })
  const begun = await go(`${gateway.adminUrl}/console/sign-in`)
  const back = await walk(new URL(begun.headers.get('location') ?? ''), 'alice', isCallback)
  const answer = await go(back.href, begun.headers.getSetCookie()[0]?.split(';')[0])
  t.equal(answer.headers.get('location'), '/console#no-role')
  t.notOk(answer.headers.getSetCookie().some((line) => line.startsWith('threadwarden=')))
  await issuer.close()
  const late = await go(`${gateway.adminUrl}/console/sign-in`)
  // What the gateway knows of the provider is kept: the browser sees that it is down.
  t.equal(late.status, 303)
})

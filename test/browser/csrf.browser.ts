/**
 * CSRF in Chromium: alice is signed in at the gateway by a cookie that browsers send with every request (`SameSite=None`), and
 * opens pages of other origins. Their requests carry the cookie, are refused for it, and reach no upstream (CWE-352).
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { request as ask, type IncomingMessage } from 'node:http'
import { createServer } from 'node:https'
import { connect, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { chromium, type Page as Window } from 'playwright-core'
import { test, type Test } from 'tap'
import { stop } from '../../examples/http.ts'
import { runInput } from '../../testing/support/client.ts'
import { freePort } from '../../testing/support/free-port.ts'
import { gated, type GatedUpstream } from '../../testing/support/gated.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { makeAuthority } from '../../testing/support/issuing.ts'
import { makeSigner } from '../../testing/support/tokens.ts'
import { until } from '../../testing/support/until.ts'
import { ARGUMENTS, CHROMIUM, patient } from './scene.ts'

const NAME = '__Secure-session'
const BASE = '/api/copilotkit'
/** All of these names are this machine. The first three are of one site, and `.test` is no public suffix list entry. */
const HOSTS = { own: 'chat.site.test', listed: 'app.site.test', neighbour: 'evil.site.test', attacker: 'attacker.test' } as const

type Place = keyof typeof HOSTS

/** A request that reached the gateway's address. */
interface Arrival {
  readonly method: string
  readonly path: string
  readonly site: string | undefined
  readonly origin: string | undefined
  readonly hasCookie: boolean
  status: number
}

interface Scene {
  readonly gate: GatedUpstream
  readonly origins: Readonly<Record<Place, string>>
  readonly arrivals: readonly Arrival[]
  /** A window in which alice is signed in at the gateway, with an empty page of that place. */
  readonly at: (place: Place) => Promise<Window>
}

/** The proxy before the gateway, which ends TLS and serves the page, as deployments have it. It serves the other pages too. */
async function startFront(t: Test, gatewayUrl: () => string, arrivals: Arrival[]): Promise<number> {
  const { cert, key } = makeAuthority().issue({ hosts: Object.values(HOSTS) })
  const arrived = ({ method = '', url = '', headers }: IncomingMessage): Arrival => {
    const { 'sec-fetch-site': site, origin, cookie = '' } = headers
    const arrival = { method, path: url, site: site as string, origin, hasCookie: cookie.includes(NAME), status: 0 }
    arrivals.push(arrival)
    return arrival
  }
  const server = createServer({ cert, key }, (request, response) => {
    const { url = '', method, rawHeaders } = request
    const { pathname, searchParams } = new URL(url, 'https://front')
    const to = searchParams.get('to')
    if (to !== null) {
      response.writeHead(307, { location: to, 'access-control-allow-origin': '*' }).end()
      return
    }
    if (!pathname.startsWith(BASE)) {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>page</title><body></body>')
      return
    }
    const arrival = arrived(request)
    const { port } = new URL(gatewayUrl())
    const onward = ask({ host: '127.0.0.1', port, method, path: url, headers: rawHeaders as never }, (answer) => {
      arrival.status = answer.statusCode ?? 0
      response.writeHead(arrival.status, answer.rawHeaders as never)
      answer.pipe(response)
    })
    onward.on('error', () => response.destroy())
    request.pipe(onward)
  })
  server.on('upgrade', (request: IncomingMessage, socket) => {
    const arrival = arrived(request)
    const onward = connect(Number(new URL(gatewayUrl()).port), '127.0.0.1')
    const lines = request.rawHeaders.flatMap((name, at, all) => (at % 2 === 0 ? [`${name}: ${all[at + 1]}`] : []))
    onward.write(`${request.method} ${request.url} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
    onward.once('data', (head: Buffer) => (arrival.status = Number(head.toString('latin1').split(' ')[1])))
    onward.on('error', () => socket.destroy())
    socket.on('error', () => onward.destroy())
    onward.pipe(socket)
  })
  server.listen(0, '127.0.0.1')
  await until(() => server.listening)
  t.teardown(() => stop(server))
  return (server.address() as AddressInfo).port
}

async function startScene(t: Test): Promise<Scene> {
  const arrivals: Arrival[] = []
  let gate: GatedUpstream | undefined
  const port = await startFront(t, () => gate?.gateway.url ?? '', arrivals)
  const origins = Object.fromEntries(
    Object.entries(HOSTS).map(([place, host]) => [place, `https://${host}:${port}`]),
  ) as Scene['origins']
  const signer = makeSigner()
  t.teardown(() => signer.remove())
  const { corp } = signer.authentication.issuers as { readonly corp: object }
  const config = {
    listen: { host: '127.0.0.1', port: await freePort(), publicOrigins: [origins.own] },
    cors: { origins: [origins.listed], credentials: true },
    authentication: { issuers: { corp: { ...corp, credential: { cookie: NAME } } } },
  }
  const started = (gate = await gated(t, undefined, { signer, config }))
  const { folder, remove } = makeFolder()
  // Debian's Chromium, and private windows of any, send no cookies to other sites unless told so. Browsers of users do.
  mkdirSync(join(folder, 'Default'))
  writeFileSync(join(folder, 'Default/Preferences'), JSON.stringify({ profile: { cookie_controls_mode: 0 } }))
  const context = await chromium.launchPersistentContext(folder, {
    executablePath: CHROMIUM,
    args: [...ARGUMENTS, '--host-resolver-rules=MAP *.test 127.0.0.1'],
    ignoreHTTPSErrors: true,
  })
  t.teardown(async () => {
    await context.close()
    remove()
  })
  const [domain, path] = [HOSTS.own, '/']
  await context.addCookies([{ name: NAME, value: started.alice, domain, path, secure: true, httpOnly: true, sameSite: 'None' }])
  return {
    gate: started,
    origins,
    arrivals,
    async at(place) {
      const window = patient(await context.newPage())
      await window.goto(`${origins[place]}/`)
      return window
    },
  }
}

/** What a page does to the gateway at `own`: a script that runs in the page. */
const ATTACKS: Readonly<Record<string, (own: string) => string>> = {
  'a request without CORS that stops a run': (own) =>
    `fetch('${own}/agent/default/stop/t-1', { method: 'POST', mode: 'no-cors', credentials: 'include' })`,
  'a run in a simple request': (own) =>
    `fetch('${own}/agent/default/run', { method: 'POST', mode: 'no-cors', credentials: 'include', body: '{"threadId":"t-1"}' })`,
  'a beacon': (own) => `navigator.sendBeacon('${own}/agent/default/stop/t-1')`,
  'a form': (own) => submitted(`method="post" enctype="text/plain" action="${own}/agent/default/run"`),
  'a form into a frame': (own) => submitted(`method="post" target="f" action="${own}/agent/default/stop/t-1"`),
  'a form in a sandboxed frame, whose origin is null': (own) =>
    sandboxed(`<form method="post" action="${own}/agent/default/stop/t-1"></form>`, 'document.forms[0].submit()'),
  'fetch in a sandboxed frame': (own) => sandboxed('', `fetch("${own}/threads/t-1/messages", { credentials: "include" })`),
  'a request with CORS': (own) => `fetch('${own}/threads/t-1/messages', { credentials: 'include' })`,
  'a stream of events': (own) => `new EventSource('${own}/threads/t-1/events', { withCredentials: true })`,
  'an image': (own) => added('img', { src: `${own}/threads/t-1/messages` }),
  'a script': (own) => added('script', { src: `${own}/threads/t-1/messages` }),
  'a frame': (own) => added('iframe', { src: `${own}/threads/t-1/messages` }),
  'a navigation': (own) => `location.assign('${own}/threads/t-1/messages')`,
  'a link without a referrer': (own) =>
    `${added('a', { rel: 'noreferrer', href: `${own}/threads/t-1/messages` })}; document.querySelector('a').click()`,
  'a new window': (own) => `open('${own}/threads/t-1/messages')`,
  'a WebSocket': (own) => `new WebSocket('${own.replace('https:', 'wss:')}/threads/t-1/messages')`,
  'an open redirect at the own origin': (own) =>
    `fetch('${new URL(own).origin}${redirectTo(`${own}/agent/default/stop/t-1`)}', { method: 'POST', mode: 'no-cors', credentials: 'include' })`,
}

function added(element: string, attributes: Readonly<Record<string, string>>): string {
  return `document.body.append(Object.assign(document.createElement('${element}'), ${JSON.stringify(attributes)}))`
}

/** A form with a field that makes JSON of its text. */
function submitted(attributes: string): string {
  const html = `<iframe name="f"></iframe><form ${attributes}><input name='{"threadId":"t-1","x":"' value='"}'></form>`
  return `document.body.innerHTML = ${JSON.stringify(html)}; document.querySelector('form').submit()`
}

function sandboxed(html: string, script: string): string {
  const sandbox = 'allow-scripts allow-forms'
  return added('iframe', { sandbox, srcdoc: `${html}<script>${script}</script>` }).replaceAll('</', '<\\/')
}

function redirectTo(url: string): string {
  return `/?to=${encodeURIComponent(url)}`
}

/** Attacks that replace the page. */
const LEAVING: ReadonlySet<string> = new Set(['a form', 'a navigation', 'a link without a referrer'])

void test('no request of another page that carries the cookie reaches the upstream', async (t) => {
  const { gate, origins, arrivals, at } = await startScene(t)
  const own = `${origins.own}${BASE}`

  const mine = await at('own')
  const run = await mine.evaluate(
    async ([url, body]) => {
      const headers = { 'content-type': 'application/json' }
      const ran = await fetch(`${url}/agent/default/run`, { method: 'POST', headers, body: body as string })
      await ran.text()
      const read = await fetch(`${url}/threads/t-1/messages`)
      return [ran.status, read.status]
    },
    [own, JSON.stringify(runInput('t-1'))],
  )
  t.same(run, [200, 200], 'the own page runs and reads the thread')

  const listed = await at('listed')
  const read = await listed.evaluate(
    async (url) => [
      (await fetch(`${url}/threads/t-1/messages`, { credentials: 'include' })).status,
      (await fetch(`${url}/agent/default/stop/t-1`, { method: 'POST', credentials: 'include' })).status,
    ],
    own,
  )
  t.same(read, [200, 200], 'a listed page of the same site does so by CORS')

  const upstreamHas = gate.upstream.beginnings()
  for (const place of ['attacker', 'neighbour'] as const) {
    const staying = await at(place)
    for (const [name, attack] of Object.entries(ATTACKS)) {
      const window = LEAVING.has(name) ? await at(place) : staying
      if (window === staying) await window.goto(origins[place])
      const before = arrivals.length
      // Many of them fail for the page, and some replace it.
      await window.evaluate(`void (() => { ${attack(own)} })()`).catch(() => {})
      await until(() => arrivals.length > before && arrivals.slice(before).every(({ status }) => status !== 0))
      for (const { hasCookie, status, site } of arrivals.slice(before)) {
        t.ok(hasCookie, `${place}: ${name}: the browser sends the cookie`)
        t.equal(status, 403, `${place}: ${name}: refused`)
        // Chromium sends Sec-Fetch-Site with every request but a handshake for a WebSocket, which has an Origin.
        const isOfNoSite = place === 'attacker' || name.includes('sandboxed')
        t.equal(site, name === 'a WebSocket' ? undefined : isOfNoSite ? 'cross-site' : 'same-site', `${place}: ${name}`)
      }
    }
    await staying.goto(origins[place])
    const before = arrivals.length
    const failed = await staying.evaluate(
      (url) =>
        fetch(`${url}/agent/default/run`, {
          method: 'POST',
          credentials: 'include',
          headers: { 'content-type': 'application/json' },
          body: '{}',
        }).then(
          () => 'answered',
          () => 'failed',
        ),
      own,
    )
    t.equal(failed, 'failed', `${place}: a run with a JSON body needs a preflight`)
    t.same(arrivals.slice(before).map(({ method, status }) => [method, status]), [['OPTIONS', 403]]) // oxfmt-ignore
  }
  // A page that is listed, reached by way of one that is not.
  const detour = await at('listed')
  const before = arrivals.length
  await detour.evaluate(
    (url) => void fetch(url, { method: 'POST', mode: 'no-cors', credentials: 'include' }),
    `${origins.attacker}${redirectTo(`${own}/agent/default/stop/t-1`)}`,
  )
  await until(() => arrivals.length > before && arrivals.slice(before).every(({ status }) => status !== 0))
  t.same(
    arrivals.slice(before).map(({ hasCookie, status, site }) => [hasCookie, status, site]),
    [[true, 403, 'cross-site']],
    'a redirect by an attacker makes the request of a listed page cross-site',
  )
  t.equal(gate.upstream.beginnings(), upstreamHas)
  const reasons = new Set(gate.gateway.lines.flatMap(({ status, reason }) => (status === 403 ? [reason] : [])))
  t.same([...reasons].toSorted(), ['cookie-cross-site', 'origin-not-listed'])
})

/** The gateway in the process of an Express, a Hono and a Next.js application: the package of npm, and a session of Auth.js. */
import { createServer } from 'node:http'
import { chromium, type Page } from 'playwright-core'
import { test, type Test } from 'tap'
import type { Issuer } from '../../examples/issuer.ts'
import { listen, stop } from '../../examples/http.ts'
import { codeOf, runInput } from '../../testing/support/client.ts'
import { until } from '../../testing/support/until.ts'
import { buildNext, installPackage, issuerOf, next, program, runNext, type App, type Person } from './framework-apps.ts'
import { answersTheTable, asUser, begin, decisionOf, spellingsLeadNowhere, streams } from './framework-cases.ts'
import { ARGUMENTS, CHROMIUM, patient } from './scene.ts'

const APPLICATIONS = { Express: program('express.ts'), Hono: program('hono.ts'), 'Next.js': next }

void test('the gateway in the process of an application', async (t) => {
  await installPackage(t)
  await buildNext(t)
  await t.test('an error in the configuration ends the server of Next.js', async (t) => {
    const { closed, output } = await runNext(t, {})
    t.same(await closed, [1, null])
    t.match(output.join('\n'), /ConfigurationInvalid: .*threadwarden\.yaml.*ISSUER_URL/)
  })
  const issuer = await issuerOf(t)
  for (const [name, start] of Object.entries(APPLICATIONS)) {
    await t.test(name, async (t) => {
      const app = await start(t, issuer)
      const threads = await answersTheTable(t, app)
      await streams(t, app)
      await spellingsLeadNowhere(t, app, threads)
      if (name === 'Next.js') {
        await t.test('the session', (t) => session(t, app, issuer))
        await t.test('in a browser', (t) => inBrowser(t, app))
      }
      await t.test('a SIGTERM ends an open stream with an event that says why', async (t) => {
        const { rest } = await begin(app)
        const ended = app.end()
        t.match(await rest(), /RUN_ERROR.*"code":"shutting-down"/)
        await ended
      })
    })
  }
})

/** What the session gives and takes. */
async function session(t: Test, app: App, issuer: Issuer): Promise<void> {
  const { cookie = '' } = app.as.alice
  const told = await fetch(`${app.origin}/api/auth/session`, { headers: { cookie } })
  t.same(Object.keys((await told.json()) as object), ['user', 'expires'], 'a page does not get the access token')

  const alone = await asUser(app, null, '/info', { token: await issuer.signIn('alice') })
  t.same([alone.status, codeOf(alone)], [401, 'credential-missing'], 'the session counts, not a header of the caller')
  const both = await asUser(app, 'bob', '/threads', { token: await issuer.signIn('alice') })
  t.match(await decisionOf(app, both.headers), { principal: 'corp:bob', status: 200 })
  const forged = { cookie: cookie.replace(/(?<=\..{20})./, (one) => (one === 'A' ? 'B' : 'A')) }
  t.equal((await asUser(app, null, '/info', { headers: forged })).status, 401)

  const refused: unknown[] = []
  for (const headers of [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'none' },
    { origin: 'https://other.example' },
    { origin: 'null' },
    { origin: app.origin.replace('http:', 'https:').replace(/:\d+$/, ':1') },
  ] satisfies Record<string, string>[]) {
    const body = runInput(crypto.randomUUID())
    refused.push(body['threadId'])
    const run = await asUser(app, 'alice', '/agent/default/run', { body, headers })
    t.same([run.status, run.json], [403, { error: 'cross-origin', message: 'cross-origin' }], JSON.stringify(headers))
  }
  for (const headers of [{ 'sec-fetch-site': 'same-origin' }, { origin: app.origin }] satisfies Record<string, string>[]) {
    const reply = await asUser(app, 'alice', '/info', { headers })
    t.equal(reply.status, 200)
    await decisionOf(app, reply.headers)
  }
  t.notOk(
    app.lines.some(({ thread }) => refused.includes(thread)),
    'no hook has seen what came from elsewhere',
  )
}

async function inBrowser(t: Test, app: App): Promise<void> {
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ARGUMENTS })
  t.teardown(() => browser.close())
  const open = async (who: Person): Promise<Page> => {
    const page = patient(await (await browser.newContext()).newPage())
    await page.goto(app.origin)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('button', { name: new RegExp(`^${who}`, 'i') }).click()
    await page.getByRole('button', { name: 'Allow' }).click()
    await page.getByTestId('who').getByText(who).waitFor()
    return page
  }
  const alice = await open('alice')
  const before = (await asUser(app, 'alice', '/threads')).text
  await alice.getByLabel('Message').fill('Hello there')
  await alice.getByRole('button', { name: 'Send' }).click()
  await alice.getByText('Echo: Hello there').waitFor()
  let thread: string | undefined
  await until(async () => {
    const ids = await alice.getByTestId('threads').getByRole('button').allTextContents()
    thread = ids.find((id) => !before.includes(`"${id}"`))
    return thread !== undefined
  })
  await alice.reload()
  await alice.getByRole('button', { name: thread ?? '' }).click()
  await alice.getByText('Echo: Hello there').waitFor()

  const bob = await open('bob')
  await bob.goto(`${app.origin}/?thread=${thread}`)
  await bob.getByRole('alert').getByText('This conversation is not yours.').waitFor()
  t.notOk((await bob.content()).includes('Hello there'))
  await isSameOriginAlone(t, alice)
  await alice.goto(app.origin)
  await alice.getByRole('button', { name: 'Sign out' }).click()
  await alice.getByRole('button', { name: 'Sign in' }).waitFor()
  t.equal(await alice.evaluate(async () => (await fetch('/api/copilotkit/threads')).status), 401)
}

/** Another port of the same host is the same site: the browser sends the session cookie along. */
async function isSameOriginAlone(t: Test, page: Page): Promise<void> {
  const target = `${new URL(page.url()).origin}/api/copilotkit/threads`
  const cookies: string[] = []
  const other = createServer(({ headers }, response) => {
    cookies.push(headers.cookie ?? '')
    response.setHeader('content-type', 'text/html').end('<p>other</p>')
  })
  const { port } = await listen(other, 0, '127.0.0.1')
  t.teardown(() => stop(other))
  await page.goto(`http://localhost:${port}/`)
  t.match(cookies[0], 'authjs.session-token=')
  const asked = page.waitForResponse(target)
  await page.evaluate((url) => void fetch(url, { mode: 'no-cors', credentials: 'include' }).catch(() => {}), target)
  t.equal((await asked).status(), 403)
}

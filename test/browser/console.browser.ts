/** The console in Chromium, before a real gateway, runtime and issuers: what an operator sees and does there, also by keyboard. */
import { createRequire } from 'node:module'
import { createServer } from 'node:http'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { chromium, type BrowserContext, type Page as Window } from 'playwright-core'
import { test, type Test } from 'tap'
import { listen, stop } from '../../examples/http.ts'
import { startIssuer } from '../../examples/issuer.ts'
import { CONSOLE_CLIENT } from '../../examples/sign-in.ts'
import { call, runInput } from '../../testing/support/client.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { freePort } from '../../testing/support/free-port.ts'
import { OPERATOR, OWNERS_SHARE } from '../../testing/support/sharing.ts'
import { startStack, type Stack } from '../../testing/support/stack.ts'
import { until } from '../../testing/support/until.ts'
import { ROOT } from '../suites/suites.ts'
import { ARGUMENTS, CHROMIUM, patient } from './scene.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const PICTURES = join(ROOT, 'docs/images')

interface Desk {
  readonly stack: Stack
  readonly url: string
  readonly context: () => Promise<BrowserContext>
  /** A window with the page of the console, in which nobody is signed in. */
  readonly window: (context?: BrowserContext) => Promise<Window>
  readonly signedIn: () => Promise<Window>
  /** Origins that a page of the console asked besides its own and the issuer's, and messages of its windows. */
  readonly foreign: readonly string[]
  readonly messages: readonly string[]
}

async function startDesk(t: Test): Promise<Desk> {
  const operators = await startIssuer()
  t.teardown(() => operators.close())
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const openId = {
    issuer: operators.issuer,
    clientId: CONSOLE_CLIENT.id,
    rolesClaim: '/role',
    operators: ['operator'],
    viewers: ['member'],
  }
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const policy = join(folder, 'policy.yaml')
  writeFileSync(policy, OWNERS_SHARE)
  const stack = await startStack(t, {
    config: {
      policy,
      limits: { tokens: [{ limit: 1000, window: '1h' }] },
      admin: { port, credential: OPERATOR, console: { url, openId } },
    },
  })
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ARGUMENTS })
  t.teardown(() => browser.close())
  const foreign: string[] = []
  const messages: string[] = []
  const context = async (): Promise<BrowserContext> => {
    const made = patient(await browser.newContext({ viewport: { width: 1200, height: 800 } }))
    t.teardown(() => made.close())
    return made
  }
  const window = async (inside?: BrowserContext): Promise<Window> => {
    const page = await (inside ?? (await context())).newPage()
    page.on('request', (request) => {
      const { origin } = new URL(request.url())
      if (origin !== url && origin !== operators.issuer) foreign.push(request.url())
    })
    page.on('pageerror', (error) => messages.push(error.message))
    page.on('console', (message) => {
      // A status is no fault of the page: some of them are what the test asks for.
      if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) messages.push(message.text())
    })
    await page.goto(`${url}/console`)
    return page
  }
  return {
    stack,
    url,
    context,
    window,
    foreign,
    messages,
    async signedIn() {
      const page = await window()
      await page.getByLabel('Admin credential').fill(OPERATOR)
      await page.getByRole('button', { name: 'Sign in', exact: true }).click()
      await page.getByRole('heading', { name: 'Health' }).waitFor()
      return page
    },
  }
}

async function picture(window: Window, name: string): Promise<void> {
  if (process.env['THREADWARDEN_SCREENSHOTS'] !== 'yes') return
  mkdirSync(PICTURES, { recursive: true })
  await window.screenshot({ path: `${PICTURES}/${name}.png` })
}

async function view(window: Window, name: string): Promise<void> {
  await window.getByRole('navigation').getByRole('link', { name }).click()
}

interface Result {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[]
}

/** Violations of the accessibility rules (WCAG 2.1 AA), in light and in dark. */
async function violations(window: Window): Promise<readonly string[]> {
  const found: string[] = []
  for (const colorScheme of ['light', 'dark'] as const) {
    await window.emulateMedia({ colorScheme })
    await window.evaluate(AXE)
    const result = await window.evaluate<Result>("axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] })")
    found.push(...result.violations.map(({ id, nodes }) => `${colorScheme}: ${id}: ${nodes[0]?.html}`))
  }
  await window.emulateMedia({ colorScheme: null })
  return found
}

void test('the console of a running gateway', async (t) => {
  const desk = await startDesk(t)
  const { stack, url } = desk
  const { base, tokens } = stack
  const asked = (token: string, path: string, body?: object) =>
    call(`${base}${path}`, { token, ...(body === undefined ? {} : { body }) })
  await asked(tokens.alice, '/agent/default/run', runInput('t-plans'))
  const refused = await asked(tokens.bob, '/threads/t-plans/messages')
  const refusedId = refused.headers.get('x-request-id') ?? ''

  await t.test('a wrong credential is told, and the right one signs in', async (t) => {
    const window = await desk.window()
    await window.getByLabel('Admin credential').fill('x'.repeat(40))
    await window.keyboard.press('Enter')
    await window.getByRole('alert').getByText('The credential is wrong.').waitFor()
    t.same(await violations(window), [])
    await picture(window, 'console-sign-in')
    await window.getByLabel('Admin credential').fill(OPERATOR)
    await window.keyboard.press('Enter')
    await window.getByText('Ready', { exact: true }).waitFor()
    await window.getByRole('row', { name: /corp .* usable/ }).waitFor()
    t.same(await violations(window), [])
    await picture(window, 'console-overview')
    await window.getByText('As written, without secrets').click()
    await window.getByText('"credential": null').waitFor()
    t.same(await violations(window), [])
    await window.getByRole('button', { name: 'Sign out' }).click()
    await window.getByLabel('Admin credential').waitFor()
  })

  await t.test('an operator signs in at the issuer; a viewer changes nothing', async (t) => {
    const olga = await desk.window()
    await olga.getByRole('link', { name: 'Sign in with your account' }).click()
    await olga.getByRole('button', { name: /^Olga/ }).click()
    await olga.getByRole('button', { name: 'Allow' }).click()
    await olga.getByText('openid:olga, operator').waitFor()
    t.equal(olga.url(), `${url}/console`)
    const bob = await desk.window()
    await bob.getByRole('link', { name: 'Sign in with your account' }).click()
    await bob.getByRole('button', { name: /^Bob/ }).click()
    await bob.getByRole('button', { name: 'Allow' }).click()
    await bob.getByText('openid:bob, viewer').waitFor()
    t.equal(await bob.getByRole('button', { name: 'Reload' }).isDisabled(), true)
  })

  await t.test('why was Bob refused: from the decision to the rule', async (t) => {
    const window = await desk.signedIn()
    await view(window, 'decisions')
    await window.getByLabel('Reason').fill('refused')
    await window.getByLabel('User').fill('corp:bob')
    const row = window.getByRole('row').filter({ hasText: 't-plans' })
    await row.getByText('thread-foreign').waitFor()
    await window.getByRole('img', { name: /Refusals by minute/ }).waitFor()
    t.same(await violations(window), [])
    await picture(window, 'console-decisions')
    await row.getByRole('button', { name: `Explain ${refusedId}` }).click()
    await window.getByText('refused', { exact: true }).waitFor()
    await window.getByText('thread-foreign').first().waitFor()
    await window.getByText(/^The same now|The same now\./).waitFor()
    t.same(await violations(window), [])
    await picture(window, 'console-explain')
    // The same for claims: the owner may read it.
    await window.getByLabel(/Request id, line of the audit/).fill('{"sub":"alice"}')
    await window.getByLabel('Target, for claims').fill('/api/copilotkit/threads/t-plans/messages')
    await window.getByRole('button', { name: 'Explain', exact: true }).click()
    await window.getByText('permitted', { exact: true }).waitFor()
    await window.getByText('6. Request to the upstream').waitFor()
    await window.getByLabel(/Request id, line of the audit/).fill('{"audit"')
    await window.getByRole('button', { name: 'Explain', exact: true }).click()
    await window
      .getByRole('alert')
      .getByText(/Not understood/)
      .waitFor()
  })

  await t.test('a stream is ended after a question, and by keyboard', async (t) => {
    const running = asked(tokens.alice, '/agent/default/run', runInput('t-endless', 'endless'))
    const window = await desk.signedIn()
    await view(window, 'streams')
    const row = window.getByRole('row').filter({ hasText: 't-endless' })
    await row.getByRole('button', { name: 'End' }).focus()
    await window.keyboard.press('Enter')
    const dialog = window.getByRole('dialog', { name: 'End' })
    await dialog.getByText(/End the stream of corp:alice on t-endless\?/).waitFor()
    await picture(window, 'console-streams')
    await window.keyboard.press('Escape')
    await dialog.waitFor({ state: 'hidden' })
    t.match((await call(`${url}/streams`, { token: OPERATOR })).text, /t-endless/, 'nothing has happened')
    await row.getByRole('button', { name: 'End' }).press('Enter')
    await window.keyboard.press('Tab')
    await window.keyboard.press('Shift+Tab')
    await dialog.getByRole('button', { name: 'End' }).press('Enter')
    t.match((await running).text, /"code":"ended-by-operator"/)
    await row.waitFor({ state: 'detached' })
    t.ok(
      stack.gateway.lines.some(
        ({ action, outcome, operator }) => action === 'end-stream' && outcome === 'done' && operator === 'credential',
      ),
    )
  })

  await t.test('the policy shows who may do what with which thread', async (t) => {
    const window = await desk.signedIn()
    await view(window, 'policy')
    const run = window.getByRole('row').filter({ has: window.getByRole('rowheader', { name: 'agent/run', exact: true }) })
    await run.getByText('signed-in').first().waitFor()
    t.equal(await run.getByRole('cell').last().innerText(), 'nobody', 'not with a foreign thread')
    t.same(await violations(window), [])
    await picture(window, 'console-policy')
  })

  await t.test('what a user has used of a token budget', async (t) => {
    const window = await desk.signedIn()
    await view(window, 'Budgets')
    await window.getByText('Write a user (corp:alice)').waitFor()
    await window.getByLabel('User').fill('corp:alice')
    await window.getByRole('row', { name: /^user configuration 1000 in 1 h [1-9]\d* / }).waitFor()
    t.same(await violations(window), [])
    await window.getByLabel('User').fill('corp:nobody')
    await window.getByRole('row', { name: /^user configuration 1000 in 1 h 0 / }).waitFor()
  })

  await t.test('a thread is found, shared, given to another user and taken away', async (t) => {
    const window = await desk.signedIn()
    await view(window, 'threads')
    await window.getByLabel('Owner', { exact: true }).fill('corp:alice')
    await window.getByRole('button', { name: 'Search' }).click()
    await window.getByRole('button', { name: 't-plans' }).click()
    const thread = window.getByRole('region', { name: 'Thread t-plans' })
    await thread.getByText('corp:alice (live)').waitFor()
    await thread.getByText('thread-foreign').first().waitFor()
    const reads = async (token: string): Promise<number> => (await asked(token, '/threads/t-plans/messages')).status
    const decide = async (name: string): Promise<void> => {
      await thread.getByRole('dialog', { name }).getByRole('button', { name }).click()
      await thread.getByRole('dialog', { name }).waitFor({ state: 'hidden' })
    }
    await thread.getByRole('button', { name: 'Grant' }).click()
    await thread.getByLabel('Grantee').fill('bob')
    await thread.getByRole('dialog', { name: 'Grant' }).getByRole('button', { name: 'Grant' }).click()
    await thread.getByRole('alert').getByText('user must be a user id').waitFor()
    await thread.getByLabel('Grantee').fill('corp:bob')
    await decide('Grant')
    await thread.getByText('corp:bob: read, by operator').waitFor()
    t.equal(await reads(tokens.bob), 200)
    t.same(await violations(window), [])
    await picture(window, 'console-threads')
    await thread.getByRole('button', { name: 'Revoke' }).click()
    await decide('Revoke')
    await until(async () => (await reads(tokens.bob)) === 403)
    await thread.getByRole('button', { name: 'Transfer' }).click()
    await thread.getByLabel('New owner').fill('corp:bob')
    await decide('Transfer')
    await thread.getByText('corp:bob (live)').waitFor()
    t.same([await reads(tokens.alice), await reads(tokens.bob)], [403, 200])
    await thread.getByRole('button', { name: 'Remove owner' }).click()
    await decide('Remove owner')
    await thread.getByText('nobody (withheld)').waitFor()
    t.equal(await reads(tokens.bob), 403)
    const done = stack.gateway.lines.filter(
      ({ msg, outcome, thread: id }) => msg === 'admin' && outcome === 'done' && id === 't-plans',
    )
    t.same(
      done.map(({ action, operator }) => `${String(action)} by ${String(operator)}`),
      ['grant', 'ungrant', 'assign', 'withhold'].map((action) => `${action} by credential`),
    )
  })

  await t.test('a page of another origin neither shows nor uses it', async (t) => {
    const context = await desk.context()
    const window = await desk.window(context)
    await window.getByLabel('Admin credential').fill(OPERATOR)
    await window.keyboard.press('Enter')
    await window.getByText('Ready', { exact: true }).waitFor()
    const server = createServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end(`<iframe src="${url}/console"></iframe>
<form method="post" action="${url}/revocations" enctype="text/plain"><input name='{"user":"corp:alice","x":"' value='"}'></form>`)
    })
    const { origin } = await listen(server, 0, '127.0.0.1')
    t.teardown(() => stop(server))
    const evil = await context.newPage()
    await evil.goto(origin)
    const framed = evil.frames().find((frame) => frame !== evil.mainFrame())
    t.equal(await framed?.getByText('Threadwarden').count(), 0, 'it is not shown in a frame')
    const statuses = await evil.evaluate(async (target) => {
      const send = async (init: object): Promise<string> => {
        try {
          return String((await fetch(`${target}/revocations`, { credentials: 'include', ...init })).status)
        } catch {
          return 'blocked'
        }
      }
      const body = JSON.stringify({ user: 'corp:alice' })
      return [
        await send({}),
        await send({ method: 'POST', body, headers: { 'content-type': 'application/json' } }),
        await send({ method: 'POST', body, mode: 'no-cors' }),
      ]
    }, url)
    t.notOk(statuses.includes('200') || statuses.includes('201'), statuses.join())
    await Promise.all([evil.waitForNavigation(), evil.evaluate('document.forms[0].submit()')])
    t.equal((await call(`${url}/revocations`, { token: OPERATOR })).text, '{"revocations":[]}')
  })

  t.same(desk.foreign, [], 'the page asks nobody else')
  t.same(desk.messages, [], 'nothing goes wrong in it, and nothing violates its policy')
})

/** The React hook of the LangGraph SDK in a page on another origin, through the gateway to the real server. */
import { createServer, type ServerResponse } from 'node:http'
import { chromium, type Page as Window } from 'playwright-core'
import { test, type Test } from 'tap'
import { listen, stop } from '../../examples/http.ts'
import { startPage } from '../../examples/page.ts'
import { call } from '../../testing/support/client.ts'
import { sayOnFailure } from '../../testing/support/decided.ts'
import { OPERATOR } from '../../testing/support/sharing.ts'
import { until } from '../../testing/support/until.ts'
import { startLangGraphScene, type LangGraphScene } from '../langgraph/scene.ts'
import { ARGUMENTS, CHROMIUM, patient } from './scene.ts'

/** The service that a node of the graph asks. It answers when the test says so. */
interface Service {
  readonly url: string
  /** Waits until the node has asked. */
  readonly asked: () => Promise<void>
  readonly answer: (text: string) => void
}

async function startService(t: Test): Promise<Service> {
  const waiting: ServerResponse[] = []
  const server = createServer((_request, response) => void waiting.push(response))
  const { origin } = await listen(server, 0, '127.0.0.1')
  t.teardown(() => stop(server))
  return {
    url: origin,
    asked: () => until(() => waiting.length > 0),
    answer: (text) => void waiting.shift()?.end(text),
  }
}

/** A window in which a user is signed in. */
interface Seat {
  readonly window: Window
  readonly say: (text: string) => Promise<void>
  /** Waits until a message of the graph has this text. */
  readonly hears: (text: string | RegExp) => Promise<void>
  /** Waits until no run is streaming. */
  readonly rests: () => Promise<void>
  /** What the user has said in the thread, as the page shows it. */
  readonly said: () => Promise<readonly string[]>
  readonly press: (button: string) => Promise<void>
  /** The id of the thread that is open. */
  readonly thread: () => string
  /** The ids in the list of threads, as soon as there are so many. */
  readonly lists: (count: number) => Promise<readonly string[]>
  readonly errors: () => Promise<readonly string[]>
  /** Waits for an error that fits. */
  readonly fails: (what: RegExp) => Promise<void>
}

function seatAt(window: Window): Seat {
  const messages = window.getByTestId('messages')
  const errors = window.getByTestId('errors')
  const threads = window.getByTestId('threads').getByRole('listitem')
  return {
    window,
    async say(text) {
      await window.getByLabel('Message').fill(text)
      await window.getByRole('button', { name: 'Send' }).click()
    },
    hears: (text) => messages.locator('[data-type=ai]').getByText(text).first().waitFor(),
    rests: () => window.locator('[data-testid=messages][aria-busy=false]').waitFor({ state: 'attached' }),
    said: () => messages.locator('[data-type=human] p').allTextContents(),
    press: (name) => window.getByRole('button', { name, exact: true }).click(),
    thread: () => new URL(window.url()).searchParams.get('thread') ?? '',
    async lists(count) {
      await until(async () => (await threads.count()) === count)
      return Promise.all((await threads.all()).map(async (one) => (await one.getAttribute('data-thread')) ?? ''))
    },
    errors: () => errors.getByRole('listitem').allTextContents(),
    fails: (what) => errors.getByText(what).first().waitFor(),
  }
}

interface Scene extends LangGraphScene {
  readonly service: Service
  /** Until the test `t` ends: pages left open slow those that follow. */
  readonly seat: (t: Test, who: 'alice' | 'bob', thread?: string) => Promise<Seat>
}

async function startScene(t: Test): Promise<Scene> {
  let scene: LangGraphScene | undefined
  const service = await startService(t)
  const page = await startPage(() => ({ runtimeUrl: scene?.url ?? '', issuer: scene?.issuer ?? '' }), 'langgraph.html')
  t.teardown(() => page.close())
  const started = (scene = await startLangGraphScene({ pageOrigin: page.url, serviceUrl: service.url }))
  t.teardown(() => started.close())
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ARGUMENTS })
  t.teardown(() => browser.close())
  return {
    ...started,
    service,
    async seat(t, who, thread) {
      const context = patient(await browser.newContext())
      t.teardown(() => context.close())
      const window = await context.newPage()
      await window.goto(thread === undefined ? page.url : `${page.url}/?thread=${thread}`)
      await window.getByRole('button', { name: 'Sign in' }).click()
      await window.getByRole('button', { name: new RegExp(`^${who}`, 'i') }).click()
      await window.getByRole('button', { name: 'Allow' }).click()
      await window.getByTestId('who').getByText(who).waitFor()
      return seatAt(window)
    },
  }
}

void test('useStream of the LangGraph SDK through the gateway', async (t) => {
  const { gateway, service, seat, client, signIn, url } = await startScene(t)
  sayOnFailure(t, gateway)
  const server = client()
  const runsOf = (thread: string) => server.runs.list(thread)
  let slow = ''
  let approved = ''
  let branched = ''

  await t.test('the first message of a new chat makes a thread, and the answer is shown while the run goes on', async (t) => {
    const alice = await seat(t, 'alice')
    t.same(await alice.lists(0), [])
    await alice.say('Please look it up')
    await service.asked()
    await alice.hears('"role":"member"')
    await alice.window.getByRole('status').getByText('asking the service').waitFor()
    t.same(await alice.said(), ['Please look it up'])
    service.answer('the first note')
    await alice.hears('found the first note')
    await alice.rests()
    slow = alice.thread()
    t.same(await alice.lists(1), [slow])
    t.same(await alice.errors(), [])
  })

  await t.test('a reload in the middle of a run joins the run, and shows what was said before', async (t) => {
    const alice = await seat(t, 'alice', slow)
    await alice.hears('found the first note')
    await alice.say('Now look it up again')
    await service.asked()
    const joined = alice.window.waitForResponse(
      (response) => response.request().method() === 'GET' && response.url().includes('/runs/'),
    )
    await alice.window.reload()
    t.equal((await joined).status(), 200)
    await alice.hears('found the first note')
    // Only the events before the reload say this: the hook asks for them with Last-Event-ID.
    await alice.window.getByRole('status').getByText('asking the service').waitFor()
    service.answer('the second note')
    await alice.hears('found the second note')
    await alice.rests()
    t.same(await alice.said(), ['Please look it up', 'Now look it up again'])
    t.same(
      (await runsOf(slow)).map(({ status }) => status),
      ['success', 'success'],
      'no run was begun or cancelled by the reload',
    )
    t.same(await alice.errors(), [])
  })

  await t.test('a run that waits for an approval is resumed, and after a reload it still waits', async (t) => {
    const alice = await seat(t, 'alice')
    await alice.say('This needs approval')
    await alice.press('Approve')
    await alice.hears('the answer is {"approved":true}')
    await alice.rests()
    approved = alice.thread()
    await alice.say('This needs approval, too')
    await alice.window.getByTestId('interrupt').getByText('May it be done?').waitFor()
    await alice.rests()
    await alice.window.reload()
    await alice.press('Refuse')
    await alice.hears('the answer is {"approved":false}')
    await alice.rests()
    t.equal(await alice.window.getByTestId('interrupt').count(), 0)
    t.same(await alice.errors(), [])
  })

  await t.test('a question is asked again from its checkpoint, and the page switches between both branches', async (t) => {
    const alice = await seat(t, 'alice')
    await alice.say('The first question')
    await alice.hears('"role":"member"')
    await alice.rests()
    branched = alice.thread()
    await alice.say('The second question')
    await alice.window.getByText('The second question').waitFor()
    await alice.rests()
    alice.window.once('dialog', (dialog) => void dialog.accept('Another second question'))
    await alice.window.getByRole('button', { name: 'Ask something else' }).nth(1).click()
    await alice.window.getByText('Another second question').waitFor()
    await alice.rests()
    t.same(await alice.said(), ['The first question', 'Another second question'])
    await alice.press('Version 1')
    t.same(await alice.said(), ['The first question', 'The second question'])
    await alice.window.reload()
    await alice.press('Version 1')
    t.same(await alice.said(), ['The first question', 'The second question'], 'the server has both branches')
    t.same(await alice.errors(), [])
  })

  await t.test('a run that is stopped is cancelled on the server, and the thread goes on', async (t) => {
    const alice = await seat(t, 'alice', branched)
    await alice.hears('"role":"member"')
    await alice.say('Look it up, or not')
    await service.asked()
    await alice.press('Stop')
    // The service has not answered. The server calls a run that was cancelled while it ran an error.
    await until(async () => (await runsOf(branched)).some(({ status }) => status === 'error'))
    service.answer('what no run waits for')
    await alice.say('Go on')
    await alice.window.getByText('Go on').waitFor()
    await alice.rests()
    t.same(await alice.errors(), [])
  })

  await t.test('each user sees exactly their own threads', async (t) => {
    const [alice, bob] = [await seat(t, 'alice'), await seat(t, 'bob')]
    await bob.say('I am here, too')
    await bob.hears('"role":"member"')
    await bob.rests()
    const his = bob.thread()
    t.same(await bob.lists(1), [his])
    await alice.press('Refresh')
    t.same([...(await alice.lists(3))].sort(), [slow, approved, branched].sort())
    const all = (await server.threads.search()).map(({ thread_id }) => thread_id)
    t.same(all.sort(), [slow, approved, branched, his].sort(), 'the server has all of them')
    await alice.window.getByTestId('threads').locator(`[data-thread="${slow}"]`).getByRole('button').first().click()
    await alice.hears('found the first note')
    t.same([await alice.errors(), await bob.errors()], [[], []])
  })

  await t.test('a script of the page can read the headers of a page of the list', async (t) => {
    const alice = await seat(t, 'alice')
    const headers = await alice.window.evaluate(
      async ([at, token]) => {
        const answer = await fetch(`${at}/threads/search`, {
          method: 'POST',
          headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
          // The server names a next page after a page that is full.
          body: '{"limit":3}',
        })
        return ['x-pagination-total', 'x-pagination-next', 'x-request-id'].map((name) => answer.headers.has(name))
      },
      [url, await signIn('alice')],
    )
    t.same(headers, [true, true, true])
  })

  await t.test('another user who opens the thread by its id sees nothing of it and cannot run it', async (t) => {
    const bob = await seat(t, 'bob', slow)
    await bob.fails(/HTTP 403: .*This conversation is not yours\./)
    await bob.say('May I?')
    await bob.window
      .getByTestId('errors')
      .getByText(/HTTP 403/)
      .nth(1)
      .waitFor()
    await bob.rests()
    t.same(await bob.window.getByTestId('messages').textContent(), '')
    t.notMatch(JSON.stringify(await server.threads.getState(slow)), 'May I?')
    t.notOk((await bob.lists(1)).includes(slow))
  })

  await t.test('another user who has the id of a run cannot join it below a thread of their own', async (t) => {
    const bob = await seat(t, 'bob')
    const [own = ''] = await bob.lists(1)
    await bob.window.getByTestId('threads').getByRole('button').first().click()
    await bob.hears('"role":"member"')
    const [run] = await runsOf(slow)
    await bob.window.evaluate(([thread, id]) => sessionStorage.setItem(`lg:stream:${thread}`, id ?? ''), [own, run?.run_id])
    await bob.window.reload()
    await bob.fails(/HTTP 404: .*Not found\./)
    await bob.hears('"role":"member"')
    t.same(await bob.said(), ['I am here, too'])
  })

  await t.test('a deleted thread is gone from the list and from the server', async (t) => {
    const alice = await seat(t, 'alice', slow)
    await alice.hears('found the first note')
    await alice.lists(3)
    await alice.window.getByTestId('threads').locator(`[data-thread="${slow}"]`).getByRole('button', { name: 'Delete' }).click()
    t.same([...(await alice.lists(2))].sort(), [approved, branched].sort())
    t.equal(alice.thread(), '', 'a new chat is open')
    await t.rejects(server.threads.get(slow), /404/)
    t.same(await alice.errors(), [])
  })

  await t.test('a revoked user sees why the answer ends, and is refused afterwards', async (t) => {
    const bob = await seat(t, 'bob')
    await bob.say('Look it up')
    await service.asked()
    await bob.hears('"role":"member"')
    const body = { user: 'corp:bob' }
    const revoked = await call(`${gateway.adminUrl}/revocations`, { token: OPERATOR, method: 'POST', body })
    t.equal(revoked.status, 201, revoked.text)
    await bob.fails(/credential-invalid: Your access was revoked: sign in again\./)
    service.answer('nothing for them')
    await bob.rests()
    await bob.say('And now?')
    await bob.fails(/HTTP 401/)
  })
})

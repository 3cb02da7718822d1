/** The real React client, from another origin, through the gateway: what people see of it. */
import { randomUUID } from 'node:crypto'
import { test } from 'tap'
import { call, runInput } from '../../testing/support/client.ts'
import { OPERATOR } from '../../testing/support/sharing.ts'
import { until } from '../../testing/support/until.ts'
import { startScene, type Seat } from './scene.ts'

/** The threads that the page lists, asked for anew until they are these. */
async function lists({ window }: Seat, expected: (threads: readonly string[]) => boolean): Promise<readonly string[]> {
  let threads: readonly string[] = []
  await until(async () => {
    const answered = window.waitForResponse((response) => response.url().includes('/threads?'))
    await window.getByRole('button', { name: 'Refresh' }).click()
    await answered
    const ids = await window.getByTestId('threads').getByRole('button').all()
    threads = await Promise.all(ids.map(async (button) => (await button.getAttribute('data-thread')) ?? ''))
    return expected(threads)
  })
  return threads
}

void test('the real client through the gateway', async (t) => {
  const { stack, seat, approve } = await startScene(t)
  const { runtime, base, tokens, gateway } = stack
  const messages = (thread: string) => call(`${base}/threads/${thread}/messages`, { token: tokens.alice })
  let shared = ''

  await t.test('a first message on a fresh page, answered bit by bit, with what might be said next', async (t) => {
    const alice = await seat(t, 'alice')
    t.same(await lists(alice, () => true), [])
    await alice.say('Hello there')
    await alice.hears('Echo: Hello there')
    // The client asks for suggestions under an id of its own, which makes no thread.
    await alice.window.getByTestId('copilot-suggestion').getByText('Be slow').waitFor()
    const [thread = '', ...more] = await lists(alice, (threads) => threads.length > 0)
    t.same(more, [], 'the suggestions are no thread')
    shared = thread
    await alice.picture('chat')
    t.same(await alice.errors(), [])
    const asked = runtime.requests.map(({ url }) => url)
    t.notOk(
      asked.some((url) => url.endsWith('/connect')),
      'a page without a thread asks for no history',
    )
  })

  await t.test('an answer comes while it is made, and is stopped by whoever asked for it', async (t) => {
    const alice = await seat(t, 'alice')
    await alice.say('endless')
    await alice.hears(/1 2 3/)
    await alice.window.getByTestId('copilot-send-button').click()
    await until(() => runtime.requests.some(({ url }) => url.includes('/stop/')))
    const [thread = ''] = await lists(alice, (threads) => threads.length === 2)
    await until(async () => !/"isRunning":true/.test((await messages(thread)).text))
    t.match((await messages(thread)).text, /1 2 3/)
    t.same(await alice.errors(), [])
  })

  await t.test('a thread is opened by its id, and after a reload what was said is there again', async (t) => {
    const alice = await seat(t, 'alice', `/?thread=${shared}`)
    await alice.hears('Echo: Hello there')
    await alice.say('Once more')
    await alice.hears('Echo: Once more')
    await alice.window.reload()
    await alice.hears('Echo: Hello there')
    await alice.hears('Echo: Once more')
    t.same(await alice.errors(), [])
  })

  await t.test(
    'a thread that does not exist yet, opened by its id, is empty and no error, and begins with the first message',
    async (t) => {
      const alice = await seat(t, 'alice', `/?thread=${randomUUID()}`)
      await until(() => runtime.requests.some(({ url }) => url.endsWith('/connect')))
      await alice.say('A beginning')
      await alice.hears('Echo: A beginning')
      t.same(await alice.errors(), [])
    },
  )

  await t.test('two people in two windows, each with their own threads', async (t) => {
    const [alice, bob] = [await seat(t, 'alice'), await seat(t, 'bob')]
    await bob.say('I am here, too')
    await bob.hears('Echo: I am here, too')
    const his = await lists(bob, (threads) => threads.length > 0)
    t.equal(his.length, 1)
    const hers = await lists(alice, (threads) => threads.length > 0)
    t.equal(hers.length, 3)
    t.notOk(hers.includes(his[0] ?? ''))
    await bob.window.getByTestId('threads').getByRole('button').first().click()
    await bob.hears('Echo: I am here, too')
    t.same([await alice.errors(), await bob.errors()], [[], []])
  })

  await t.test('somebody else’s thread, opened by its id: nothing of it is seen, and the client says why', async (t) => {
    const bob = await seat(t, 'bob', `/?thread=${shared}`)
    await bob.fails(/^agent_connect_failed: This conversation is not yours\. \(HTTP 403\)$/)
    await bob.say('May I?')
    await bob.fails(/^agent_run_failed: This conversation is not yours\. \(HTTP 403\)$/)
    await bob.picture('foreign-thread')
    t.notMatch(await bob.chat(), /Hello there|Once more/)
    t.notMatch((await messages(shared)).text, 'May I?')
  })

  await t.test('an attachment of 5 MB arrives whole', async (t) => {
    const alice = await seat(t, 'alice')
    // On 20 MB the client computes for half a minute by itself, and its own timers run out meanwhile.
    const size = 5 * 1024 * 1024
    await alice.window
      .locator('input[type=file]')
      .first()
      .setInputFiles({
        name: 'large.png',
        mimeType: 'image/png',
        buffer: Buffer.alloc(size, 7),
      })
    await alice.window.getByTestId('copilot-attachment-queue').waitFor()
    await alice.say('Look at this')
    await alice.hears(`Echo: Look at this (with ${size} bytes)`)
    t.same(await alice.errors(), [])
  })

  await t.test('and one of 20 MB, the most that the client takes, without the client', async (t) => {
    const size = 20 * 1024 * 1024
    const source = { type: 'data', value: Buffer.alloc(size, 7).toString('base64'), mimeType: 'image/png' }
    const content = [
      { type: 'text', text: 'Look at this' },
      { type: 'image', source },
    ]
    const body = runInput(randomUUID(), '', { messages: [{ id: randomUUID(), role: 'user', content }] })
    const { status, text } = await call(`${base}/agent/default/run`, { token: tokens.alice, body })
    t.equal(status, 200, text)
    const deltas = Array.from(text.matchAll(/"delta":"([^"]*)"/g), ([, delta]) => delta)
    t.equal(deltas.join(''), `Echo: Look at this (with ${size} bytes)`)
  })

  await t.test(
    'a token that is renewed while an answer comes: the answer goes on, and the next one is asked for with the new one',
    async (t) => {
      const alice = await seat(t, 'alice')
      await alice.say('slow')
      await alice.hears(/1 2 3/)
      await alice.window.getByRole('button', { name: 'Renew the token' }).click()
      await alice.hears(/ 48 49 50/)
      await alice.say('And now?')
      await alice.hears('Echo: And now?')
      const credentials = gateway.lines.filter(({ route, principal }) => route === 'agent/run' && principal === 'corp:alice')
      t.ok(credentials.length > 1)
      const sent = runtime.requests.filter(({ url }) => url.endsWith('/run')).map(({ headers }) => headers.authorization)
      t.not(sent.at(-1), sent.at(-2), 'another token')
      t.same(await alice.errors(), [])
    },
  )

  await t.test('who signs out is refused, and told so in the chat; who signs in again goes on where they were', async (t) => {
    const alice = await seat(t, 'alice', `/?thread=${shared}`)
    await alice.hears('Echo: Hello there')
    await alice.window.getByRole('button', { name: 'Sign out' }).click()
    await alice.say('Am I still here?')
    await alice.fails(/^agent_run_failed: .* \(HTTP 401\)$/)
    await alice.picture('signed-out')
    t.notMatch((await messages(shared)).text, 'Am I still here?')
    const popup = alice.window.waitForEvent('popup')
    await alice.window.getByRole('button', { name: 'Sign in again' }).click()
    await approve(await popup)
    await alice.window.getByTestId('who').getByText('alice').waitFor()
    await alice.say('Yes')
    await alice.hears('Echo: Yes')
    t.same(await alice.errors(), [])
  })

  await t.test('who is revoked sees their answer break off, and why', async (t) => {
    const bob = await seat(t, 'bob')
    await bob.say('endless')
    await bob.hears(/1 2 3/)
    const body = { user: 'corp:bob' }
    const revoked = await call(`${gateway.adminUrl}/revocations`, {
      token: OPERATOR,
      transport: 'multi-route',
      method: 'POST',
      body,
    })
    t.equal(revoked.status, 201, revoked.text)
    await bob.fails(/^agent_run_error_event: /)
    t.comment((await bob.errors()).join('\n'))
    t.match(await bob.chat(), /1 2 3/)
    await bob.say('And now?')
    await bob.fails(/^agent_run_failed: .* \(HTTP 401\)$/)
  })
  const dropped = gateway.lines.filter(({ msg }) => String(msg).startsWith('dropped a message of a run'))
  t.same(dropped, [], 'the client sends only messages that the shipped policy forwards')
})

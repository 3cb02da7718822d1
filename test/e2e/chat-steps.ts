/** What people do on a chat page; the same for every transport. */
import type { Test } from 'tap'
import type { ChatCore } from '../../testing/support/chat-core.ts'
import { asked, type Sent } from '../../testing/support/chat-requests.ts'
import { until } from '../../testing/support/until.ts'
import type { Scene } from './scene.ts'

const HELLO = [
  { role: 'user', text: 'hello' },
  { role: 'assistant', text: 'Echo: hello' },
]

/** A first message, and the same chat on a page that is opened later. */
export async function replaying(t: Test, scene: Scene, alice: ChatCore, thread: string): Promise<void> {
  t.strictSame(await alice.replay(thread), [], 'nothing is in a thread that nobody has begun')
  t.strictSame(await alice.say(thread, 'hello'), HELLO)
  const later = await scene.open('alice')
  t.strictSame(await later.replay(thread), HELLO)
  t.strictSame([...alice.errors, ...later.errors], [])
}

/** The parts of a thread that a page reads or changes; the runtime in memory changes none, and says so itself. */
export async function resources(t: Test, alice: ChatCore, thread: string): Promise<void> {
  const messages = HELLO.map(({ role, text }) => ({ role, content: text }))
  t.match(await alice.read(`/threads/${thread}/messages`), { status: 200, json: { messages } })
  t.match(await alice.read(`/threads/${thread}/events`), { status: 200, json: { events: [{ type: 'RUN_STARTED' }] } })
  t.match(await alice.read(`/threads/${thread}/state`), { status: 200, json: { state: null } })
  const no = 'Request failed: 422'
  t.strictSame(await alice.change(thread), { rename: no, archive: no, unarchive: no, delete: no })
  const answers = alice.sent.filter(({ status }) => status === 422).map(({ json }) => (json as { readonly error: string }).error)
  t.equal(answers.filter((error) => error.includes('CopilotKitIntelligence')).length, 4, "the runtime's own answer")
}

/** Nothing of alice's is bob's, and his page is told so. */
export async function refusals(t: Test, bob: ChatCore, thread: string): Promise<void> {
  t.strictSame(await bob.replay(thread), [])
  t.match(bob.errors[0]?.message, /^HTTP 403: .*This conversation is not yours\./, 'what a page shows')
  t.strictSame(told(bob), [
    ['agent_run_failed_event', 403, 'not-owner'],
    ['agent_connect_failed', 403, 'not-owner'],
  ])
  t.strictSame(await bob.say(thread, 'let me in'), [{ role: 'user', text: 'let me in' }], 'no answer came')
  t.strictSame(told(bob), [
    ['agent_run_failed_event', 403, 'not-owner'],
    ['agent_run_failed', 403, 'not-owner'],
  ])
  t.match(await bob.stop(thread), { status: 403, json: { code: 'not-owner' } })
  t.match(await bob.read(`/threads/${thread}/messages`), { status: 403, json: { code: 'not-owner' } })
  t.match(await bob.read(`/threads/${thread}/events`), { status: 404, json: { code: 'not-found' } })
  t.match(await bob.read(`/threads/${thread}/state`), { status: 404, json: { code: 'not-found' } })
  const no = 'Request failed: 403'
  t.strictSame(await bob.change(thread), { rename: no, archive: no, unarchive: no, delete: no })
  t.strictSame(await bob.threads(), [])
  await bob.settled()
  t.ok(bob.connected, 'his page is as good as before')
  t.strictSame(bob.errors, [])
}

/** The stop button: bob's does nothing to alice's run; that of any page of hers ends it. */
export async function stopping(t: Test, scene: Scene, alice: ChatCore, bob: ChatCore): Promise<void> {
  const elsewhere = await scene.open('alice')
  for (const [page, named] of [
    [alice, true],
    [elsewhere, false],
  ] as const) {
    const thread = crypto.randomUUID()
    const running = alice.say(thread, 'endless')
    await until(() => alice.said(thread).length > 1)
    t.match(await bob.stop(thread), { status: 403, json: { code: 'not-owner' } })
    const stop = await page.stop(thread)
    t.match(stop, { status: 200, json: { stopped: true, interrupt: { code: 'STOPPED' } } })
    t.match(about(page, stop), named ? { runId: String } : undefined, 'only the page that runs knows the run')
    t.equal(stop.contentType, 'application/json', 'body or none')
    const [, answer] = await running
    t.match(answer?.text, /^1 /)
  }
  t.strictSame([...bob.errors, ...elsewhere.errors], [])
}

/** Suggestions come of a run that nobody is to see; what a client of one route sends for it is a run on a new thread. */
export async function suggesting(t: Test, scene: Scene, alice: ChatCore, thread: string): Promise<void> {
  await alice.replay(thread)
  const suggestion = await alice.suggest(thread)
  t.equal(suggestion.status, 200)
  t.match(suggestion, isSingle(alice) ? { body: { method: 'agent/run' } } : { target: /\/agent\/default\/suggest$/ })
  const { threadId } = about(alice, suggestion) as { readonly threadId: string }
  t.not(threadId, thread, 'the thread of the chat is not touched')
  t.strictSame(await (await scene.open('alice')).replay(thread), HELLO)
}

/** A sound of so many bytes. */
export async function dictation(t: Test, alice: ChatCore): Promise<void> {
  t.match(await alice.dictate(1234), { status: 200, json: { text: 'heard 1234 bytes' } })
  const { contentType, ...sent } = alice.sent.at(-1) as Sent
  t.equal(asked(sent as Sent), isSingle(alice) ? 'transcribe' : undefined)
  t.equal(contentType, isSingle(alice) ? 'application/json' : null, 'a form finds its content type itself')
}

/** Pages without a good token, from the start or from one message to the next, are told to sign in. */
export async function signedOut(t: Test, scene: Scene): Promise<void> {
  for (const [who, text] of [
    [undefined, 'Sign in: no credential was sent.'],
    [{ token: 'no-token' }, 'Sign in again: the credential is not valid.'],
  ] as const) {
    const page = await scene.open(who)
    t.notOk(page.connected)
    t.strictSame(
      page.errors.map(({ code, message }) => [code, message]),
      [['runtime_info_fetch_failed', `Runtime info request failed with status 401: ${text}`]],
    )
  }
  const alice = await scene.open('alice')
  alice.renew('no-token')
  const thread = crypto.randomUUID()
  await alice.say(thread, 'hello')
  await until(() => alice.errors.length > 2)
  t.notOk(alice.connected)
  t.strictSame(told(alice), [
    ['agent_run_failed_event', 401, 'credential-invalid'],
    ['agent_run_failed', 401, 'credential-invalid'],
    ['runtime_info_fetch_failed', undefined, undefined],
  ])
}

/** What a page was told of errors since this was last asked. */
function told({ errors }: ChatCore): unknown[] {
  return errors.splice(0).map(({ code, status, refusal }) => [code, status, refusal])
}

/** The body that a request would have on a route of its own. */
function about(page: ChatCore, { body }: Sent): unknown {
  return isSingle(page) ? (body as { readonly body?: unknown }).body : body
}

function isSingle({ core }: ChatCore): boolean {
  return core.runtimeTransport === 'single'
}

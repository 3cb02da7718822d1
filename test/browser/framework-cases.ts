/** What every application with hooks must answer, whatever its framework. */
import type { Test } from 'tap'
import { call, codeOf, type Reply, runInput } from '../../testing/support/client.ts'
import { ask, type RawRequest } from '../../testing/support/raw.ts'
import { until } from '../../testing/support/until.ts'
import type { App, Person } from './framework-apps.ts'

const BASE = '/api/copilotkit'

/** Alice's thread has a message that nobody else may see. */
const SECRET = 'the-secret-of-alice'

export interface Threads {
  readonly hers: string
  readonly his: string
}

interface Case {
  readonly who: Person | null
  readonly method?: string
  readonly path: string
  readonly body?: unknown
  readonly status: number
  readonly code?: string
  readonly text?: RegExp
}

/** In order. `unborn` is a thread that does not exist. */
function casesOf({ hers, his }: Threads, unborn: string): readonly Case[] {
  const run = (who: Person | null, thread: string, text: string) => ({
    ...{ who, path: '/agent/default/run', body: runInput(thread, text) },
  })
  const forbidden = { status: 403, code: 'not-owner' } as const
  const hidden = { status: 404, code: 'not-found' } as const
  const unsigned = { who: null, status: 401, code: 'credential-missing' } as const
  return [
    { ...unsigned, path: '' },
    { ...unsigned, path: '/info' },
    { ...unsigned, path: '/threads' },
    { ...unsigned, path: '/nowhere' },
    { ...run(null, hers, SECRET), ...unsigned },
    { ...run('alice', hers, SECRET), status: 200, text: /RUN_FINISHED/ },
    { ...run('bob', his, 'of bob'), status: 200, text: /RUN_FINISHED/ },
    { who: 'alice', path: '/info', status: 200, text: /"agents"/ },
    { who: 'alice', path: '/threads', status: 200, text: new RegExp(`^\\{"threads":\\[\\{"id":"${hers}"[^{]*\\}\\]`) },
    { who: 'bob', path: '/threads', status: 200, text: new RegExp(`^\\{"threads":\\[\\{"id":"${his}"[^{]*\\}\\]`) },
    { who: 'alice', path: `/threads/${hers}/messages`, status: 200, text: new RegExp(SECRET) },
    { who: 'alice', path: `/threads/${hers}/events`, status: 200, text: new RegExp(SECRET) },
    { who: 'alice', path: '/agent/default/connect', body: runInput(hers), status: 200, text: new RegExp(SECRET) },
    { ...unsigned, path: `/threads/${hers}/messages` },
    { who: 'bob', path: `/threads/${hers}/messages`, ...forbidden },
    { who: 'bob', path: `/threads/${hers}/events`, ...hidden },
    { who: 'bob', path: `/threads/${hers}/state`, ...hidden },
    { ...run('bob', hers, 'mine now'), ...forbidden },
    { who: 'bob', path: '/agent/default/connect', body: runInput(hers), ...forbidden },
    { who: 'bob', path: '/agent/default/suggest', body: runInput(hers), ...forbidden },
    { who: 'bob', method: 'POST', path: `/agent/default/stop/${hers}`, ...forbidden },
    { who: 'bob', method: 'PATCH', path: `/threads/${hers}`, body: { agentId: 'default', name: 'mine' }, ...forbidden },
    { who: 'bob', method: 'DELETE', path: `/threads/${hers}`, body: { agentId: 'default' }, ...forbidden },
    { who: 'bob', method: 'POST', path: '/threads/clear', status: 403, code: 'not-allowed' },
    { who: 'alice', path: '/agent/default/connect', body: runInput(unborn), status: 200, text: /^$/ },
    { who: 'alice', path: '/nowhere', ...hidden },
  ]
}

/** Runs the table against an application; its threads stay. */
export async function answersTheTable(t: Test, app: App): Promise<Threads> {
  const threads = { hers: crypto.randomUUID(), his: crypto.randomUUID() }
  for (const { who, method, path, body, status, code, text } of casesOf(threads, crypto.randomUUID())) {
    const reply = await asUser(app, who, path, { ...(method !== undefined && { method }), ...(body !== undefined && { body }) })
    const name = `${who ?? 'nobody'}: ${method ?? (body === undefined ? 'GET' : 'POST')} ${path}`
    t.same([reply.status, codeOf(reply)], [status, code], name)
    if (text !== undefined) t.match(reply.text, text, name)
    if (who !== 'alice') t.notMatch(reply.text, SECRET, name)
  }
  return threads
}

export function asUser(app: App, who: Person | null, path: string, options: Parameters<typeof call>[1] = {}): Promise<Reply> {
  return call(`${app.origin}${BASE}${path}`, { ...options, headers: { ...(who !== null && app.as[who]), ...options.headers } })
}

/** A run arrives while it goes on, only its owner stops it, and a caller who leaves is noticed. */
export async function streams(t: Test, app: App): Promise<void> {
  const running = await begin(app)
  t.equal((await asUser(app, 'bob', `/agent/default/stop/${running.thread}`, { method: 'POST' })).status, 403)
  const stopped = await asUser(app, 'alice', `/agent/default/stop/${running.thread}`, { method: 'POST' })
  t.match(stopped, { status: 200, json: { stopped: true } })
  t.match(await running.rest(), /RUN_FINISHED/, 'it ends')

  const left = await begin(app)
  left.leave()
  await until(() => app.lines.some(({ thread, complete }) => thread === left.thread && complete !== undefined))
  t.match(
    app.lines.find(({ thread }) => thread === left.thread),
    { route: 'agent/run', complete: false },
  )
}

/** Alice begins a run that goes on until it is stopped, and gets its first events. */
export async function begin(app: App) {
  const thread = crypto.randomUUID()
  const leaving = new AbortController()
  const answer = await fetch(`${app.origin}${BASE}/agent/default/run`, {
    method: 'POST',
    headers: { ...app.as.alice, 'content-type': 'application/json' },
    body: JSON.stringify(runInput(thread, 'endless')),
    signal: leaving.signal,
  })
  const reader = (answer.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  while (!text.includes('TEXT_MESSAGE_CONTENT')) text += (await reader.read()).value ?? ''
  return {
    thread,
    leave: () => leaving.abort(),
    rest: async (): Promise<string> => {
      for (let read = await reader.read(); !read.done; read = await reader.read()) text += read.value
      return text
    },
  }
}

/** Spellings by which Bob asks for Alice's messages, some of them by way of his own thread. */
function targetsOf({ hers, his }: Threads): readonly string[] {
  const [mine, theirs] = [`${BASE}/threads/${his}`, `${BASE}/threads/${hers}`]
  const data = `/_next/data/build${theirs}/messages.json`
  return [
    ...['..', '%2e%2e', '%2E.', '.%2e', '%252e%252e'].flatMap((up) => [
      `${mine}/${up}/${hers}/messages`,
      `${mine}/messages/${up}/${up}/${hers}/messages`,
      `/api/auth/${up}/copilotkit/threads/${hers}/messages`,
      `/${up}${theirs}/messages`,
      `${mine}%2F${up}%2F${hers}/messages`,
      `${mine}\\${up}\\${hers}\\messages`,
      `${mine}%5C${up}%5C${hers}/messages`,
    ]),
    ...[
      `/${theirs}/messages`,
      `//${theirs}/messages`,
      `${BASE}//threads/${hers}/messages`,
      `${BASE}/threads//${hers}//messages//`,
    ],
    ...[`${theirs}/messages/`, `${theirs}/messages/.`, `${theirs}/./messages`, `${theirs}/%2e/messages`, `${theirs};x/messages`],
    ...[`${theirs}%2Fmessages`, `${BASE}%2Fthreads%2F${hers}%2Fmessages`, `/api%2Fcopilotkit/threads/${hers}/messages`],
    ...[`${BASE}/threads/${encodeURIComponent(`${his}/../${hers}`)}/messages`, `${BASE}/threads/%${hex(hers)}/messages`],
    ...[`${theirs}/messages#/threads/${his}/messages`, `${mine}/messages#/../../${hers}/messages`],
    ...[`${mine}/messages?/../../${hers}/messages`, `${mine}/messages?path=threads&path=${hers}&path=messages`],
    ...[`${mine}/messages?nxtPpath=threads/${hers}/messages`, `${mine}/messages?__nextDataReq=1&_rsc=x&threadId=${hers}`],
    ...[data, `/_next${theirs}/messages`, `${theirs}/messages.rsc`, `${theirs}/messages.json`, `${theirs}/messages.segments/x`],
    ...[`/API/COPILOTKIT/threads/${hers}/messages`, `${BASE}/THREADS/${hers}/messages`, `/x${theirs}/messages`],
    ...[`${mine}${theirs}/messages`, `${BASE}/agent/default/threads/${hers}/messages`],
    ...[`http://other.example${theirs}/messages`, `//other.example${theirs}/messages`, `/\\other.example${theirs}/messages`],
    ...[
      `${BASE}/[[...path]]/threads/${hers}/messages`,
      `${theirs}/messages%00`,
      `${theirs}/messages%0a`,
      `${theirs}%20/messages`,
    ],
  ]
}

function hex(id: string): string {
  return `${id.charCodeAt(0).toString(16)}${id.slice(1)}`
}

/** Header lines that some server, framework or platform reads a path, a method or a user from. */
function linesOf({ hers }: Threads): readonly string[] {
  const path = `${BASE}/threads/${hers}/messages`
  return [
    ...['X-Original-URL', 'X-Rewrite-URL', 'X-Forwarded-Uri', 'X-Forwarded-Path', 'X-Forwarded-Prefix'],
    ...['X-Matched-Path', 'X-Invoke-Path', 'X-Middleware-Rewrite', 'X-Nextjs-Rewrite', 'X-Nextjs-Rewritten-Path', 'Next-Url'],
  ]
    .map((name) => `${name}: ${path}`)
    .concat([
      `X-Now-Route-Matches: 1=threads/${hers}/messages`,
      `X-Invoke-Query: ${encodeURIComponent(JSON.stringify({ path: ['threads', hers, 'messages'] }))}`,
      ...['RSC: 1', 'X-Nextjs-Data: 1', 'Next-Router-Prefetch: 1', 'X-Middleware-Subrequest: middleware:middleware:middleware'],
      ...['X-HTTP-Method-Override: DELETE', 'X-Middleware-Override-Headers: authorization', 'X-Forwarded-Host: x/api?'],
      `X-Forwarded-Proto: http://x${path}#`,
    ])
}

/** The log line of an answered request. */
export async function decisionOf(app: App, headers: Headers): Promise<App['lines'][number]> {
  const id = headers.get('x-request-id')
  const isIts = ({ msg, requestId }: App['lines'][number]): boolean => msg === 'request' && requestId === id
  await until(() => app.lines.some(isIts))
  return app.lines.find(isIts) ?? {}
}

/**
 * Bob's requests on a raw socket, in every spelling. None is answered with Alice's messages or changes them, and each that is
 * permitted was decided for the thread that the runtime gave.
 */
export async function spellingsLeadNowhere(t: Test, app: App, threads: Threads): Promise<void> {
  const { hers, his } = threads
  const own = (): Promise<string> => asUser(app, 'alice', `/threads/${hers}/messages`).then(({ text }) => text)
  const before = await own()
  const lines = Object.entries(app.as.bob).map(([name, value]) => `${name}: ${value}`)
  const body = JSON.stringify(runInput(hers, 'mine now'))
  const mine = `${BASE}/threads/${his}/messages`
  const requests: RawRequest[] = [
    ...targetsOf(threads).flatMap((target) => [
      ...[{ target }, { target, method: 'DELETE', body: '{"agentId":"default"}' }],
      { target: target.replace(/messages/g, 'clear'), method: 'POST', body: '{}' },
    ]),
    ...linesOf(threads).map((line) => ({ target: mine, lines: [line] })),
    ...[`x${BASE}/threads/${hers}/messages?`, `x${BASE}/threads/${hers}/messages#`, `x\\y`, 'user@x', ''].map((host) => ({
      target: mine,
      host,
    })),
    ...[
      '/agent/default/run',
      '/agent/default/run/',
      '//agent/default/run',
      '/agent/default/./run',
      `/agent/default/run?threadId=${his}`,
    ].map((path) => ({ target: `${BASE}${path}`, body })),
    { target: `${BASE}/agent/default/run`, body: body.replace('{', `{"threadId":"${his}",`) },
    { target: BASE, body: JSON.stringify({ method: 'agent/run', params: { agentId: 'default' }, body: runInput(hers) }) },
    {
      target: BASE,
      body: `{"method":"resource/request","params":{"path":"/threads/${his}/../${hers}/messages","httpMethod":"GET"}}`,
    },
  ]
  let permitted = 0
  for (const request of requests) {
    const answer = await ask(app.origin, { ...request, lines: [...lines, ...(request.lines ?? [])] })
    const told = `${request.method ?? 'GET'} ${request.target} ${request.lines?.join() ?? ''} ${request.host ?? ''}: ${answer.status}`
    t.notOk(answer.body.includes(SECRET), told)
    if (answer.status < 300 && answer.body.includes('{"messages"')) {
      permitted += 1
      t.match(answer.body, 'of bob', told)
      t.equal((await decisionOf(app, answer.headers))['thread'], his, told)
    }
  }
  t.ok(permitted > 5, `${permitted} of ${requests.length} requests reached his own thread`)
  t.equal(await own(), before)
  t.match((await asUser(app, 'alice', '/threads')).text, `"id":"${hers}"`)
}

/** A list is the caller's own threads, gathered from as many upstream pages as it takes, each once. */
import { test } from 'tap'
import { call, runInput } from '../../testing/support/client.ts'
import { gated, type GatedUpstream } from '../../testing/support/gated.ts'
import { events, json, type Answering } from '../../testing/support/upstream.ts'

interface List {
  readonly threads: readonly { readonly id: string }[]
  readonly nextCursor: string | null
}

/** Answers with these pages; the cursor of page n is `page-n`. */
function paged(pages: readonly (readonly string[])[]): Answering {
  return (request, response) => {
    const cursor = new URL(request.target, 'http://a').searchParams.get('cursor')
    const at = cursor === null ? 0 : Number(cursor.slice('page-'.length))
    const threads = (pages[at] ?? []).map((id) => ({ id, name: `name of ${id}` }))
    return json({ threads, nextCursor: at + 1 < pages.length ? `page-${at + 1}` : null })(request, response)
  }
}

/** A gateway where alice owns the threads a…, and bob the threads b…. */
async function owning(t: Parameters<typeof gated>[0], ids: readonly string[]): Promise<GatedUpstream> {
  const gate = await gated(t, events())
  for (const id of ids) {
    await call(`${gate.base}/agent/default/run`, { token: id.startsWith('a') ? gate.alice : gate.bob, body: runInput(id) })
  }
  return gate
}

async function list(base: string, token: string, query = ''): Promise<List> {
  return (await call(`${base}/threads${query}`, { token })).json as List
}

/** All pages that a caller gets by following the cursors. */
async function walk(base: string, token: string, query: string): Promise<List[]> {
  const pages = [await list(base, token, query)]
  for (let next = pages[0]!.nextCursor; next !== null; next = pages.at(-1)!.nextCursor) {
    pages.push(await list(base, token, `${query}&cursor=${next}`))
  }
  return pages
}

const idsOf = (page: List): string[] => page.threads.map(({ id }) => id)

const PAGES = [['b1', 'a1', 'x1'], ['b2', 'b3'], [], ['a2', 'a3', 'b4', 'a4'], ['b5'], ['a5', 'x2']]
const ALL = ['a1', 'a2', 'a3', 'a4', 'a5', 'b1', 'b2', 'b3', 'b4', 'b5']

void test('without a limit one answer holds all, in the upstream’s order and with its items as they are', async (t) => {
  const { base, alice, bob, upstream } = await owning(t, ALL)
  upstream.answer(paged(PAGES))
  const mine = await list(base, alice)
  t.same(idsOf(mine), ['a1', 'a2', 'a3', 'a4', 'a5'])
  t.same(mine.threads[0], { id: 'a1', name: 'name of a1' })
  t.equal(mine.nextCursor, null)
  t.same(idsOf(await list(base, bob)), ['b1', 'b2', 'b3', 'b4', 'b5'])
})

void test('following the cursors gives each own thread exactly once, at most limit on a page', async (t) => {
  const { base, alice, bob, upstream } = await owning(t, ALL)
  upstream.answer(paged(PAGES))
  for (const limit of [1, 2, 3, 4, 5, 6]) {
    for (const [token, own] of [
      [alice, ['a1', 'a2', 'a3', 'a4', 'a5']],
      [bob, ['b1', 'b2', 'b3', 'b4', 'b5']],
    ] as const) {
      const pages = await walk(base, token, `?limit=${limit}`)
      t.same(pages.flatMap(idsOf), own, `limit ${limit}`)
      t.ok(pages.every((page) => page.threads.length <= limit))
      t.ok(
        pages.every((page) => page.threads.length > 0),
        'no page is empty: a cursor says that something follows',
      )
    }
  }
})

void test('a full last page has no cursor, though others’ threads follow', async (t) => {
  const { base, alice, upstream } = await owning(t, ['a1', 'b1', 'b2'])
  upstream.answer(paged([['a1', 'b1'], ['b2']]))
  const page = await list(base, alice, '?limit=1')
  t.same(idsOf(page), ['a1'])
  t.equal(page.nextCursor, null, 'as the runtime writes it')
})

void test('the upstream is asked with its own cursors, and with the caller’s filters on every page', async (t) => {
  const { base, alice, upstream } = await owning(t, ['a1', 'a2'])
  const before = upstream.requests.length
  upstream.answer(paged([['a1'], ['b9'], ['a2']]))
  await list(base, alice, '?agentId=default&limit=5')
  t.same(
    upstream.requests.slice(before).map(({ target }) => target.slice('/api/copilotkit'.length)),
    ['/threads?agentId=default', '/threads?agentId=default&cursor=page-1', '/threads?agentId=default&cursor=page-2'],
  )
})

void test('a caller without threads gets an empty list, and null for a cursor', async (t) => {
  const { base, olga, upstream } = await owning(t, ALL)
  upstream.answer(paged(PAGES))
  t.same(await list(base, olga), { threads: [], nextCursor: null }, 'an operator is not an owner')
  t.same(await list(base, olga, '?limit=1'), { threads: [], nextCursor: null })
})

void test('an upstream whose pages never end is asked a bounded number of times', async (t) => {
  const { base, alice, upstream } = await owning(t, ['a1'])
  const before = upstream.requests.length
  upstream.answer(json({ threads: [{ id: 'b9' }], nextCursor: 'again' }))
  const answer = await call(`${base}/threads`, { token: alice })
  t.equal(answer.status, 200)
  t.ok(upstream.requests.length - before <= 20, 'pages for one request')
})

/** A page of a list that changes: what it was before the first answer was given on, and what it is after. */
async function changed(t: Parameters<typeof gated>[0], before: readonly string[], after: readonly string[]): Promise<string[]> {
  const { base, alice, upstream } = await owning(t, [...new Set([...before, ...after, 'a9'])])
  upstream.answer(paged([before, ['a9']]))
  const first = await list(base, alice, '?limit=2')
  upstream.answer(paged([after, ['a9']]))
  return idsOf(await list(base, alice, `?cursor=${first.nextCursor ?? ''}`))
}

void test('a page that shrank or grew between two answers leaves no thread out', async (t) => {
  const page = ['b1', 'a1', 'b2', 'a2', 'a3', 'b3', 'a4']
  for (const [what, after, rest] of [
    ['as it was', page, ['a3', 'a4']],
    ['another’s thread is gone', ['a1', 'b2', 'a2', 'a3', 'b3', 'a4'], ['a3', 'a4']],
    ['several before the place are gone', ['a2', 'a3', 'b3', 'a4'], ['a3', 'a4']],
    ['the one before the place is gone', ['b1', 'a1', 'b2', 'a3', 'b3', 'a4'], ['a3', 'a4']],
    ['the one at the place is gone', ['a1', 'a2', 'b3', 'a4'], ['a4']],
    ['both are gone', ['b1', 'a1', 'b2', 'b3', 'a4'], ['a4']],
    ['others came', ['b7', 'b8', ...page], ['a3', 'a4']],
    ['the one before the place moved up', ['a2', 'b1', 'a1', 'b2', 'a3', 'b3', 'a4'], ['a3', 'a4']],
    // It stands among what was given before, where the caller sees it who reads the list anew.
    ['the one at the place moved up', ['a3', 'b1', 'a1', 'b2', 'a2', 'b3', 'a4'], ['a4']],
    ['it moved up, and others are gone', ['a3', 'a2', 'a4'], ['a4']],
  ] as const)
    await t.test(what, async (t) => t.same(await changed(t, page, after), [...rest, 'a9']))
})

/**
 * docs/reference/admin-api.md and docs/reference/admin-api.openapi.yaml: the running admin API has their paths and methods and no
 * others, gives every documented status, and answers as the schemas say.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { parse } from 'yaml'
import { z } from 'zod'
import { valueAt } from '../../src/core/json/pointer.ts'
import type { Call } from '../../testing/support/client.ts'
import { startAdmin, type Admin } from '../../testing/support/admin.ts'
import { code, page, ROOT, rows, section } from './markdown.ts'

const PAGE = page('docs/reference/admin-api.md')
const FILE = 'docs/reference/admin-api.openapi.yaml'

interface Answer {
  readonly $ref?: string
  readonly content?: { readonly 'application/json': { readonly schema: object } }
}

type Method = 'get' | 'post' | 'delete'
type Operations = Partial<Record<Method, { readonly responses: Readonly<Record<string, Answer>> }>>

interface Specification {
  readonly openapi: string
  readonly paths: Readonly<Record<string, Operations>>
  readonly components: { readonly responses: Readonly<Record<string, Answer>> }
}

const SPECIFICATION = parse(readFileSync(join(ROOT, FILE), 'utf8')) as Specification

const OPERATIONS = Object.entries(SPECIFICATION.paths).flatMap(([path, operations]) =>
  (['get', 'post', 'delete'] as const).flatMap((method) => {
    const operation = operations[method]
    return operation === undefined ? [] : [{ name: `${method.toUpperCase()} ${path}`, ...operation }]
  }),
)

/** The schema of a documented answer; null for one without a body, undefined for one that is not documented. */
function schemaOf(name: string, status: number): object | null | undefined {
  const found = OPERATIONS.find((operation) => operation.name === name)?.responses[status]
  const answer = found?.$ref === undefined ? found : SPECIFICATION.components.responses[found.$ref.split('/').at(-1) ?? '']
  if (answer === undefined) return undefined
  return answer.content?.['application/json'].schema ?? null
}

/** A part of the file with what its references lead to in their place; none leads to itself. */
function resolved(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(resolved)
  if (typeof part !== 'object' || part === null) return part
  const { $ref, ...rest } = part as { readonly $ref?: string }
  if ($ref === undefined) return Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, resolved(value)]))
  return resolved(valueAt(SPECIFICATION, $ref.slice(1)))
}

const USER = 'corp:alice'
const BOB = { user: 'corp:bob', right: 'read' }

interface Ask extends Call {
  readonly path: string
  readonly status: number
}

const plain = { 'content-type': 'text/plain' }
const big = { user: 'x'.repeat(5000) }

/** What every operation that takes a body, or refuses one, is asked. */
const withBody = (path: string, method?: string): readonly Ask[] => {
  const more = method === undefined ? {} : { method }
  return [
    { path, status: 413, body: big, ...more },
    { path, status: 415, body: {}, headers: plain, ...more },
  ]
}

const GRANTS = '/threads/t1/grants'

/** The requests of each operation, in order. */
const REQUESTS: Readonly<Record<string, readonly Ask[]>> = {
  'GET /revocations': [{ path: '/revocations', status: 200 }],
  'POST /revocations': [
    { path: '/revocations', status: 201, body: { tokenId: 'j-1' } },
    { path: '/revocations', status: 201, body: { user: USER, before: '2026-01-31T12:00:00Z' } },
    { path: '/revocations', status: 400, body: { user: 'nobody:x' } },
    ...withBody('/revocations'),
  ],
  'DELETE /revocations/token/{id}': [
    { path: '/revocations/token/j-1', method: 'DELETE', status: 204 },
    { path: '/revocations/token/j-1', method: 'DELETE', status: 404 },
    { path: '/revocations/token/j-1', method: 'DELETE', status: 400, body: {} },
    ...withBody('/revocations/token/j-1', 'DELETE'),
  ],
  'DELETE /revocations/user/{id}': [
    { path: `/revocations/user/${USER}`, method: 'DELETE', status: 204 },
    { path: `/revocations/user/${USER}`, method: 'DELETE', status: 404 },
    { path: `/revocations/user/${USER}`, method: 'DELETE', status: 400, body: {} },
    ...withBody(`/revocations/user/${USER}`, 'DELETE'),
  ],
  'GET /threads/{id}': [
    { path: '/threads/t1', status: 200 },
    { path: '/threads/t1?scope=legal', status: 404 },
    { path: '/threads/t%201', status: 400 },
  ],
  'GET /threads/{id}/grants': [
    { path: GRANTS, status: 200 },
    { path: '/threads/t2/grants', status: 404 },
    { path: '/threads/t%201/grants', status: 400 },
  ],
  'POST /threads/{id}/grants': [
    { path: GRANTS, status: 201, body: BOB },
    { path: GRANTS, status: 200, body: BOB },
    { path: GRANTS, status: 201, body: { group: 'corp:support', right: 'write' } },
    { path: GRANTS, status: 400, body: { user: 'corp:bob' } },
    { path: '/threads/t2/grants', status: 404, body: BOB },
    ...withBody(GRANTS),
  ],
  'DELETE /threads/{id}/grants': [
    { path: GRANTS, method: 'DELETE', status: 204, body: { user: 'corp:bob' } },
    { path: GRANTS, method: 'DELETE', status: 404, body: { user: 'corp:bob' } },
    { path: GRANTS, method: 'DELETE', status: 400, body: {} },
    ...withBody(GRANTS, 'DELETE'),
  ],
  'POST /reload': [
    { path: '/reload', method: 'POST', status: 200 },
    { path: '/reload', method: 'POST', status: 409 },
    { path: '/reload', status: 400, body: {} },
    ...withBody('/reload'),
  ],
}

async function check(t: Test, admin: Admin, name: string, { path, status, ...call }: Ask): Promise<void> {
  const answer = await admin.ask(path, call)
  const what = `${name}: ${status}`
  t.equal(answer.status, status, what, { answer: answer.text })
  const schema = schemaOf(name, answer.status)
  if (schema === undefined) t.fail(`${what} is not documented`)
  else if (schema === null) t.equal(answer.text, '', what)
  else {
    const read = z.fromJSONSchema(resolved(schema) as Parameters<typeof z.fromJSONSchema>[0]).safeParse(answer.json)
    t.ok(read.success, what, { answer: answer.text, error: read.error?.message })
  }
}

void test('every documented answer is given, and has its schema', async (t) => {
  let reloads = 0
  const admin = await startAdmin(t, () => {
    reloads += 1
    return reloads === 1
      ? { outcome: 'reloaded', generation: 2, faults: [] }
      : { outcome: 'refused', generation: 2, faults: ['policy.yaml:3: …'] }
  })
  await admin.store.claim({ scope: '', threadId: 't1' }, { userId: USER, agentId: 'default', guest: false, now: Date.now() })
  for (const [name, asks] of Object.entries(REQUESTS)) for (const ask of asks) await check(t, admin, name, ask)
  for (const [name, [ask]] of Object.entries(REQUESTS)) {
    if (ask === undefined) continue
    await check(t, admin, name, { ...ask, status: 401, token: 'wrong' })
    await check(t, admin, name, { ...ask, status: 403, headers: { origin: 'https://app.example.com' } })
  }
  await admin.breakStore()
  for (const [name, [ask]] of Object.entries(REQUESTS)) {
    if (ask !== undefined && name !== 'POST /reload') await check(t, admin, name, { ...ask, status: 503 })
  }
  const asked = Object.entries(REQUESTS).map(([name, asks]) => {
    const common = name === 'POST /reload' ? [401, 403] : [401, 403, 503]
    return [name, [...new Set([...asks.map(({ status }) => status), ...common])].toSorted()]
  })
  t.same(
    Object.fromEntries(OPERATIONS.map(({ name, responses }) => [name, Object.keys(responses).map(Number).toSorted()])),
    Object.fromEntries(asked),
    'each documented status was given',
  )
})

void test('the API has the documented operations and no others', async (t) => {
  const admin = await startAdmin(t)
  const documented = OPERATIONS.map(({ name }) => name.replaceAll(/\{(\w+)\}/g, ':$1'))
  t.same([...admin.routes].toSorted(), documented.toSorted())
  t.equal(SPECIFICATION.openapi, '3.1.0')
})

void test('the table of requests has each operation', (t) => {
  const named = rows(section(PAGE, 'Requests'))
    .map(([name]) =>
      code(name)?.replace('token/ID', 'token/{id}').replace('user/ID', 'user/{id}').replace('threads/ID', 'threads/{id}'),
    )
    .filter((name) => name?.includes(' /') === true)
  t.same(named.toSorted(), OPERATIONS.map(({ name }) => name).toSorted())
  t.end()
})

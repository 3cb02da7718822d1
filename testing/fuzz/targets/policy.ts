/**
 * Policy files. Whatever stands in one, it is loaded or it has errors that say where; what is loaded has only keys of the published
 * schema, and opens nothing that none of its rules speaks of.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import type { RouteDescriptor } from '../../../src/core/route/classify.ts'
import { decide, type Facts, type OwnerRecord } from '../../../src/core/decide/decide.ts'
import { ANONYMOUS, EVERYBODY, type Principal, type User } from '../../../src/core/decide/principal.ts'
import { ALL_ROUTES, ROUTE_IDS } from '../../../src/core/route/all-routes.ts'
import { loadPolicy } from '../../../src/policy/compile.ts'
import { Sources } from '../../../src/document/sources.ts'

// oxfmt-ignore
export const words = [
  'version: 1\n', 'rules:\n', '  - routes: [info]\n    allow: [signed-in]\n', 'routes: all', 'deny: [anonymous]', 'allow: [operator]', 'threads: [own]', 'threads: [foreign, shared, unknown]',
  'agents: [a]', 'methods: [GET]', 'roles: [r]', 'permissions: { any: [p] }', 'claims: [{ at: /sub, equals: x }]', 'unless: { roles: [r] }', 'refusal: 404', 'only: user-scoped',
  'forwardedProps: [{ name: x, unsafe: true }]', 'state: drop', 'tools: [t]', 'headers: [x-tenant]', 'limits: { runs: 1/m, body: 1MiB, streams: off }', 'operators: [{ role: r }]', 'issuers: [corp]', 'sharing: true',
  'name: x', 'agent/run', 'threads/list', 'threads/messages', 'threads/clear', 'threads/update', 'threads/grants', 'annotate', '&a ', '*a', '<<: *a', '!!', '? ', '|', '>', '---\n', '__proto__: ', 'constructor: ', '"', "'", '{', '}', '[', ']', '#', '\t', 'null', '~', '.inf', '.nan', '0x1',
]

const RULE = 'version: 1\nrules:\n  - routes: [info]\n    allow: [signed-in]\n'
const THREAD_RULE = 'version: 1\nrules:\n  - routes: [threads/messages, agent/run]\n    allow: [signed-in]\n'

// oxfmt-ignore
export const seeds = [
  RULE, '{"version":1,"rules":[{"routes":["agent/run"],"allow":["signed-in"],"threads":["own","unknown"],"agents":["a"]}]}', `${THREAD_RULE}    threads: [foreign]\n`, `${THREAD_RULE}    threads: [own, shared]\nsharing: true\n`, `${THREAD_RULE}    threads: [own]\n`, `${RULE}    bogus: 1\n`, `${RULE}bogus: 1\n`, `${RULE}    limits: { bogus: 1 }\n`, `${RULE}    permissions: { any: [p], bogus: [p] }\n`, `${RULE}    unless: { roles: [r], bogus: 1 }\n`, `${RULE}    claims: [{ at: /a, equals: 1, bogus: 1 }]\n`, `${RULE}operators: [{ role: r, bogus: 1, issuer: corp }]\n`, `${RULE}forwardedProps: [{ name: a, bogus: 1 }]\n`,
  'version: 1\nrules:\n  - routes: all\n    deny: [anonymous]\n', 'version: 1\nrules:\n  - routes: all\n    allow: [anonymous]\n', 'version: 1\nrules:\n  - routes: [threads/clear]\n    allow: [operator]\noperators: [{ role: r, issuer: corp }]\n', 'version: 1\nrules:\n  - routes: [threads/clear]\n    allow: [signed-in]\n', 'version: 1\nrules:\n  - routes: [info]\n    allow: []\n', 'version: 1\nrules: []\n', 'version: 2\n', '', '- a\n', 'rules: &a [*a]\n', 'a: *b\n', '\tversion: 1\n', 'version: 1\nversion: 1\n', '__proto__: { version: 1 }\n', '--- 1\n--- 2\n', '? [version]\n: 1\n', 'version: !!int 1\nrules: !!seq\n  - {routes: [info], allow: [anonymous]}\n', 'version: 1\nrules:\n  - &a {routes: [info], allow: [anonymous]}\n  - {<<: *a, name: b}\n', 'a: &a [1,1]\nb: &b [*a,*a]\nc: &c [*b,*b]\nd: [*c,*c]\n',
]

const FOLDER = mkdtempSync(join(tmpdir(), 'threadwarden-fuzz-'))
process.once('exit', () => rmSync(FOLDER, { recursive: true, force: true }))
const FILE = join(FOLDER, 'policy.yaml')
const SURROUNDINGS = { issuers: ['corp', 'partner'], forwardHeaders: ['x-tenant'] } as const

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
}
const SCHEMA = JSON.parse(readFileSync(new URL('../../../policies/policy.schema.json', import.meta.url), 'utf8')) as Schema

const ALICE = user('alice')
const CALLERS: readonly Principal[] = [
  ANONYMOUS,
  EVERYBODY,
  ALICE,
  user('olga', { roles: ['r'], permissions: ['p'] }),
  user('pia', { issuer: 'partner' }),
]
// oxfmt-ignore
const RECORDS: readonly OwnerRecord[] = [null, { owner: 'corp:alice', deleted: false }, { owner: 'corp:zoe', deleted: false }, { owner: 'corp:zoe', deleted: true }, { owner: 'corp:zoe', deleted: false, granted: 'write' }]

function user(subject: string, more: Partial<User> = {}): User {
  const issuer = more.issuer ?? 'corp'
  const nothing = { name: undefined, roles: [], permissions: [], groups: [], claims: {} }
  return { kind: 'user', issuer, subject, id: `${issuer}:${subject}`, ...nothing, ...more }
}

export function examine(input: Buffer): void {
  writeFileSync(FILE, input)
  const loaded = loadPolicy(new Sources(), FILE, SURROUNDINGS)
  const lines = input.toString('utf8').split(/\r\n|\n|\r/).length
  for (const { file, line, message, path } of loaded.ok ? loaded.value.warnings : loaded.faults) {
    assert.equal(file, FILE)
    assert.equal(typeof path, 'string')
    assert.ok(message.length > 0, 'it says what is wrong')
    if (line !== undefined) assert.ok(line >= 1 && line <= lines, `line ${line} of ${lines}`)
  }
  if (!loaded.ok) {
    assert.ok(loaded.faults.length > 0, 'it says why')
    return
  }
  const value: unknown = parse(input.toString('utf8'))
  checkKeys(value, SCHEMA, '')
  checkDecisions(loaded.value.policy.rules, (value as { readonly rules: readonly WrittenRule[] }).rules)
}

/** Every key stands in the published schema, at its place. */
function checkKeys(value: unknown, schema: Schema, path: string): void {
  const kinds = [schema, ...(schema.anyOf ?? [])]
  if (Array.isArray(value)) {
    const items = kinds.find((kind) => kind.items !== undefined)?.items
    value.forEach((item, at) => checkKeys(item, items ?? {}, `${path}/${at}`))
  } else if (typeof value === 'object' && value !== null) {
    const properties = kinds.find((kind) => kind.properties !== undefined)?.properties ?? {}
    for (const [key, member] of Object.entries(value)) {
      assert.ok(Object.hasOwn(properties, key), `${path}/${key} is a key of the format`)
      checkKeys(member, properties[key] ?? {}, `${path}/${key}`)
    }
  }
}

/** What is used here of a rule as it stands in the file. */
interface WrittenRule {
  readonly routes: 'all' | readonly string[]
  readonly allow?: readonly string[]
  readonly threads?: readonly string[]
}

function checkDecisions(rules: Parameters<typeof decide>[2], written: readonly WrittenRule[]): void {
  assert.deepEqual(Object.keys(rules.routes).sort(), [...ROUTE_IDS].sort())
  for (const route of ALL_ROUTES) {
    const allowing = written.filter(({ routes, allow }) => allow !== undefined && allow.length > 0 && routes.includes(route.id))
    const descriptor: RouteDescriptor = { outcome: 'classified', route, ids: { agentId: 'a', threadId: 't1' }, query: [] }
    for (const caller of CALLERS) {
      for (const record of route.thread === undefined ? [null] : RECORDS) {
        const facts: Facts = {
          userScoped: false,
          unknownThread: 'claim',
          enforcement: 'enforce',
          record,
          upstreamHistory: 'none',
        }
        const { outcome } = decide(descriptor, caller, rules, facts)
        assert.notEqual(outcome, 'needs', 'every fact is there')
        if (outcome !== 'permitted') continue
        const who = caller.kind === 'anonymous' && !caller.standsForAll ? ['anonymous'] : ['anonymous', 'signed-in', 'operator']
        const speaking = allowing.filter(({ allow }) => allow?.some((one) => who.includes(one)))
        assert.ok(speaking.length > 0, `${route.id} is open, and no rule allows it`)
        if (record === null || record.owner === caller.id) continue
        const opens = speaking.some(
          ({ threads }) =>
            threads?.includes('foreign') === true ||
            (record.granted !== undefined && rules.sharing && threads?.includes('shared') === true),
        )
        assert.ok(opens, `${route.id} is open on the thread of another, and no rule says so`)
      }
    }
  }
}

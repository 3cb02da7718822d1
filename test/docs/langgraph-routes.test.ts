/** docs/reference/langgraph-routes.md, "Bodies": the names and roles that it lists are those of the code. */
import { test } from 'tap'
import { ROUTES_OF } from '../../src/core/route/all-routes.ts'
import { passingBody } from '../../src/core/route/bodies.ts'
import { isReservedConfigurable } from '../../src/core/route/langgraph-bodies.ts'
import { MESSAGE_ROLES } from '../../src/core/route/message-rules.ts'
import type { Json, JsonObject } from '../../src/core/json/read.ts'
import type { Route } from '../../src/core/route/routes.ts'
import { OPEN_BODIES } from '../../testing/support/open-bodies.ts'
import { page, rows, section } from './markdown.ts'

const BODIES = section(page('docs/reference/langgraph-routes.md'), 'Bodies')

const part = (heading: string): string => BODIES.split(`\n### ${heading}\n`)[1]?.split('\n### ')[0] ?? ''
const quoted = (text = ''): readonly string[] => Array.from(text.matchAll(/`([^`]+)`/g), ([, name = '']) => name)

const RUN = ROUTES_OF.langgraph.find(({ agent }) => agent === 'body') as Route

const forwarded = (body: JsonObject, roles: readonly string[] = MESSAGE_ROLES): JsonObject => {
  const messages = { ...OPEN_BODIES.messages, roles: new Set(roles), others: 'drop' as const }
  const passing = passingBody(RUN, body, { ...OPEN_BODIES, messages })
  if (passing.outcome !== 'passes') throw new Error(passing.reason)
  return passing.body
}

void test('no policy opens the names of config.configurable that the page lists', (t) => {
  const names = rows(part('config')).flatMap(([cell]) => quoted(cell))
  t.ok(names.length > 12)
  for (const name of names) t.ok(isReservedConfigurable(name.replace('*', 'example')), name)
  t.notOk(isReservedConfigurable('model'))
  t.end()
})

void test('the members of metadata that the page lists are dropped', (t) => {
  const names = part('metadata')
    .split('\n')
    .filter((line) => line.startsWith('- '))
    .flatMap(quoted)
  t.equal(names.length, 7)
  const metadata = Object.fromEntries(names.map((name) => [name.endsWith('_') ? `${name}example` : name, 'x']))
  t.same(forwarded({ metadata: { ...metadata, title: 'T' } }), { metadata: { title: 'T' } })
  t.end()
})

void test('each type, role or class of a message has the role of the page', (t) => {
  const roles = rows(part('messages')).filter((cells) => !/[{[]|text/.test(cells[0] ?? ''))
  t.equal(roles.length, 5)
  for (const [names, role] of roles) {
    for (const name of quoted(names)) {
      const [wanted = ''] = quoted(role)
      const isClass = /^[A-Z]/.test(name)
      const message: Json = isClass
        ? { lc: 1, type: 'constructor', id: ['langchain_core', 'messages', name], kwargs: {} }
        : { type: name, content: 'x' }
      const body = { input: { messages: [message] } }
      t.same(forwarded(body, [wanted]), body, name)
      const others = MESSAGE_ROLES.filter((one) => one !== wanted)
      t.same(forwarded(body, others), { input: { messages: [] } }, `${name} has no other role`)
    }
  }
  t.end()
})

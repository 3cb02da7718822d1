/** The tables of docs/reference have every key of the configuration and of a policy, with its default. */
import { test } from 'tap'
import { z } from 'zod'
import { configSchema } from '../../src/config/schema.ts'
import { policySchema } from '../../src/policy/schema.ts'
import { code, page, rows, section } from './markdown.ts'

interface Node {
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Node>>
  readonly additionalProperties?: Node | boolean
  readonly items?: Node
  readonly default?: unknown
  readonly not?: unknown
}

interface Key {
  readonly path: string
  /** As the pages write it; undefined if the key has none, or one of several lines. */
  readonly value: string | undefined
  readonly isRequired: boolean
}

/** The keys that have a value of their own. */
function keysOf(node: Node, path = ''): readonly Key[] {
  return Object.entries(node.properties ?? {}).flatMap(([name, inner]) => {
    // A removed key has no value: the schema knows it only to refuse it.
    if (inner.not !== undefined) return []
    const below = keysOf(inner, `${path}${name}.`)
    const { additionalProperties: each } = inner
    if (typeof each === 'object' && each.properties !== undefined) return keysOf(each, `${path}${name}.<key>.`)
    const isRequired = node.required?.includes(name) === true
    return below.length > 0 ? below : [{ path: `${path}${name}`, value: written(inner.default), isRequired }]
  })
}

function written(value: unknown): string | undefined {
  return typeof value === 'string' || value === undefined ? value : JSON.stringify(value)
}

/** Defaults by key, as tables have them: `key`, type, `default`. */
function documented(text: string): ReadonlyMap<string | null, string | undefined> {
  return new Map(rows(text).map(([key, , value]) => [code(key), value] as const))
}

const schemaOf = (schema: z.ZodType) => z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Node

const CONFIG_KEYS = keysOf(schemaOf(configSchema))
/** A rule has these as the file has them. */
const AS_IN_THE_FILE = ['messages', 'langgraph']
const RULE_KEYS = [
  ...keysOf(schemaOf(policySchema).properties?.['rules']?.items ?? {}).filter(
    ({ path }) => !AS_IN_THE_FILE.some((name) => path.startsWith(`${name}.`)),
  ),
  ...AS_IN_THE_FILE.map((path) => ({ path, value: undefined, isRequired: false })),
]

const POLICY = page('docs/reference/policy.md')

for (const [name, text, keys] of [
  ['docs/reference/configuration.md', page('docs/reference/configuration.md').text, CONFIG_KEYS],
  ['docs/reference/policy.md, the file', section(POLICY, 'Keys of the file'), keysOf(schemaOf(policySchema))],
  ['docs/reference/policy.md, a rule', section(POLICY, 'Rules'), RULE_KEYS],
] as const) {
  void test(`${name}: every key and its default`, (t) => {
    const found = documented(text)
    t.ok(keys.length > 5)
    for (const { path, value, isRequired } of keys) {
      t.ok(found.has(path), path)
      if (value !== undefined) t.equal(code(found.get(path)), value, `the default of ${path}`)
      if (isRequired) t.match(found.get(path), /^required/, `${path} is required`)
      else t.not(found.get(path), 'required', `${path} is not required`)
    }
    t.end()
  })
}

void test('docs/reference/timeouts.md has every duration and limit, with its default', (t) => {
  const found = new Map(rows(page('docs/reference/timeouts.md').text).map(([key, value]) => [code(key), code(value)] as const))
  const values = new Map(CONFIG_KEYS.map(({ path, value }) => [path, value] as const))
  for (const [key, value] of found) {
    const expected = key === null ? undefined : values.get(key)
    // The schema has no default that depends on another key.
    if (expected !== undefined) t.equal(value, expected, `the default of ${key}`)
  }
  // An upstream or agent with a key of its own has the defaults of `upstream`.
  const bounds = CONFIG_KEYS.filter(({ path }) => !/^(?:upstreams|agents)\./.test(path)).filter(
    ({ path, value }) => path.startsWith('limits.') || /^\d+(?:ms|s|m|h|[KMG]iB)$/.test(value ?? ''),
  )
  t.ok(bounds.length > 20)
  for (const { path } of bounds) t.ok(found.has(path), path)
  t.end()
})

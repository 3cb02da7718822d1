/** docs/reference/configuration.md and docs/reference/policy.md name every key, with its default. */
import { test } from 'tap'
import { z } from 'zod'
import { configSchema } from '../../src/config/schema.ts'
import { policySchema } from '../../src/policy/schema.ts'
import { code, page, rows } from './markdown.ts'

/** What of a JSON schema is read here. */
interface Node {
  readonly properties?: Readonly<Record<string, Node>>
  readonly additionalProperties?: Node | boolean
  readonly items?: Node
  readonly default?: unknown
  readonly not?: unknown
}

/** The keys that hold a value of their own, each with its default if that is a word. */
function keysOf(node: Node, path = ''): readonly (readonly [string, string | undefined])[] {
  return Object.entries(node.properties ?? {}).flatMap(([name, inner]) => {
    // A removed key has no value: the schema knows it only to refuse it.
    if (inner.not !== undefined) return []
    const below = keysOf(inner, `${path}${name}.`)
    const { additionalProperties: each } = inner
    if (typeof each === 'object' && each.properties !== undefined) return keysOf(each, `${path}${name}.<key>.`)
    const value = ['string', 'boolean'].includes(typeof inner.default) ? String(inner.default) : undefined
    return below.length > 0 ? below : [[`${path}${name}`, value] as const]
  })
}

/** Defaults by key, as the tables of a page have them: `key`, type, `default`. */
function documented(name: string): ReadonlyMap<string | null, string | undefined> {
  return new Map(rows(page(name).text).map(([key, , value]) => [code(key), value] as const))
}

const schemaOf = (schema: z.ZodType) => z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Node

for (const [name, keys] of [
  ['docs/reference/configuration.md', keysOf(schemaOf(configSchema))],
  [
    'docs/reference/policy.md',
    [...keysOf(schemaOf(policySchema)), ...keysOf(schemaOf(policySchema).properties?.['rules']?.items ?? {})],
  ],
] as const) {
  void test(`${name} has every key and its default`, (t) => {
    const written = documented(name)
    t.ok(keys.length > 5)
    for (const [key, value] of keys) {
      t.ok(written.has(key), key)
      if (value !== undefined) t.equal(code(written.get(key)), value, `the default of ${key}`)
    }
    t.end()
  })
}

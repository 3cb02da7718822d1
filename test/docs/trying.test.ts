/** docs/how-to/authorize/try-a-policy.md shows what its commands print; docs/reference/policy-tests.md has every key of a test file. */
import { test } from 'tap'
import { z } from 'zod'
import { auditLine } from '../../src/audit/line.ts'
import { testSchema } from '../../src/tools/simulate/test-schema.ts'
import { audited, READING } from '../../testing/support/audited.ts'
import { user } from '../../testing/support/callers.ts'
import { runBlocks } from './commands.ts'
import { code, page, rows } from './markdown.ts'

void test('the commands of the page print what it shows', async (t) => {
  const line = auditLine(
    audited({
      ...READING,
      client: undefined,
      principal: user('alice'),
      facts: { ...READING.facts, record: { owner: 'corp:alice', deleted: false } },
      outcome: 'permitted',
    }),
  )
  const { ran } = await runBlocks(t, 'docs/how-to/authorize/try-a-policy.md', {
    files: { 'data/audit.jsonl': `${JSON.stringify(line)}\n` },
    exits: { 'threadwarden diff': 1 },
  })
  const commands = ran.map(({ command }) => /threadwarden (\w+)/.exec(command)?.[1])
  t.same(
    commands.filter((command) => command !== undefined),
    ['routes', 'explain', 'explain', 'diff', 'test'],
  )
})

interface Node {
  readonly properties?: Readonly<Record<string, Node>>
  readonly items?: Node
  readonly description?: string
  readonly anyOf?: readonly Node[]
  readonly additionalProperties?: Node | boolean
}

const SCHEMA = z.toJSONSchema(testSchema, { io: 'input', unrepresentable: 'any' }) as Node

void test('every key of a test file and of a test has its row', (t) => {
  const written = rows(page('docs/reference/policy-tests.md').text).map(([key]) => code(key))
  const { tests, facts, ...others } = SCHEMA.properties ?? {}
  const keys = [
    ...Object.keys(others),
    ...Object.keys(facts?.properties ?? {}).map((key) => `facts.${key}`),
    'tests',
    ...Object.keys(tests?.items?.properties ?? {}),
  ]
  t.ok(keys.length > 15)
  for (const key of keys) t.ok(written.includes(key), key)
  t.end()
})

void test('hovering any key of a test file explains it', (t) => {
  const bare = (node: Node, path: string): readonly string[] => [
    ...Object.entries(node.properties ?? {}).flatMap(([key, inner]) => [
      ...(inner.description === undefined ? [`${path}${key}`] : []),
      ...bare(inner, `${path}${key}.`),
    ]),
    ...(node.items === undefined ? [] : bare(node.items, `${path}[].`)),
    ...(node.anyOf ?? []).flatMap((one) => bare(one, path)),
    ...(typeof node.additionalProperties === 'object' ? bare(node.additionalProperties, `${path}*.`) : []),
  ]
  t.same(bare(SCHEMA, ''), [])
  t.end()
})

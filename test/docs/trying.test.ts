/** docs/how-to/authorize/try-a-policy.md: its files are valid, its commands say what stands below them, and its tables have every key of a test file. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { z } from 'zod'
import { testSchema } from '../../src/tools/simulate/test-schema.ts'
import { run } from '../../testing/support/program.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { blocks, code, page, rows } from './markdown.ts'

const PAGE = page('docs/how-to/authorize/try-a-policy.md')

/** The files of the page, by the names that its commands have for them. */
function files(): Readonly<Record<string, string | undefined>> {
  const [config, policy, next] = blocks(PAGE, 'yaml')
  const [alice, body] = blocks(PAGE, 'json')
  const [tests] = blocks(PAGE, 'yaml tests')
  return {
    'threadwarden.yaml': config,
    'policy.yaml': policy,
    'new.yaml': next,
    'chat.test.yaml': tests,
    'alice.json': alice,
    'run.json': body,
  }
}

for (const block of blocks(PAGE, 'console')) {
  const [command = '', ...said] = block.split('\n')
  void test(command, async (t) => {
    const { folder, remove } = makeFolder()
    t.teardown(remove)
    for (const [name, text] of Object.entries(files())) writeFileSync(join(folder, name), text ?? '')
    const args = command.replace(/^\$ threadwarden /, '').split(' ')
    const { stdout, stderr } = await run(t, args, { environment: { SERVICE_TOKEN: 'a-secret' }, folder })
    t.equal(stderr, '')
    const whole = said.join('\n')
    const [start = '', rest] = whole.split('…\n')
    const printed = stdout.replaceAll(folder, '/srv/chat')
    t.equal(rest === undefined ? printed : printed.slice(0, start.length), start)
  })
}

void test('the page has an example of each command', (t) => {
  const commands = blocks(PAGE, 'console').map((block) => block.split(' ')[2])
  t.same(commands, ['routes', 'explain', 'diff', 'test'])
  t.end()
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
  const written = rows(PAGE.text).map(([key]) => code(key))
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

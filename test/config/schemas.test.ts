/**
 * The schemas that are published for editors: they are those of the source, explain every key, and find nothing wrong with
 * the files that are shipped, each of which names its own in its first line.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { test } from 'tap'
import { parse } from 'yaml'
import { z } from 'zod'
import { ROOT } from '../docs/markdown.ts'

/** What of a JSON schema is read here. */
interface Node {
  readonly description?: string
  readonly properties?: Readonly<Record<string, Node>>
  readonly additionalProperties?: Node | boolean
  readonly items?: Node
  readonly anyOf?: readonly Node[]
  readonly allOf?: readonly Node[]
  readonly oneOf?: readonly Node[]
  readonly $defs?: Readonly<Record<string, Node>>
}

const SCHEMAS = ['config', 'policies'].flatMap((folder) => filesIn(folder, '.schema.json'))
const SHIPPED = ['config', 'policies', 'policies/tests'].flatMap((folder) => filesIn(folder, '.yaml'))

function filesIn(folder: string, ending: string): readonly string[] {
  const names = readdirSync(join(ROOT, folder)).filter((name) => name.endsWith(ending))
  return names.map((name) => join(folder, name))
}

function textOf(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8')
}

/** The keys without a word of explanation, by their path. */
function unexplained(node: Node, path = ''): readonly string[] {
  const below = [...(node.anyOf ?? []), ...(node.allOf ?? []), ...(node.oneOf ?? []), ...Object.values(node.$defs ?? {})]
  return [
    ...Object.entries(node.properties ?? {}).flatMap(([name, inner]) => [
      ...(inner.description === undefined || !/\S.{9}/.test(inner.description) ? [`${path}/${name}`] : []),
      ...unexplained(inner, `${path}/${name}`),
    ]),
    ...(typeof node.additionalProperties === 'object' ? unexplained(node.additionalProperties, `${path}/*`) : []),
    ...(node.items === undefined ? [] : unexplained(node.items, `${path}/-`)),
    ...below.flatMap((one) => unexplained(one, path)),
  ]
}

/** What an editor makes of a schema. */
function editorOf(schema: string): z.ZodType {
  return z.fromJSONSchema(JSON.parse(textOf(schema)) as Parameters<typeof z.fromJSONSchema>[0])
}

void test('configuration, policies and their tests have a schema each', (t) => {
  t.same([...SCHEMAS].sort(), ['config/threadwarden.schema.json', 'policies/policy.schema.json', 'policies/test.schema.json'])
  t.end()
})

void test('the published schemas fit their source', (t) => {
  const { status, stderr } = spawnSync(process.execPath, [join(ROOT, 'scripts/schemas.ts'), '--check'], { encoding: 'utf8' })
  t.same({ status, stderr }, { status: 0, stderr: '' })
  t.end()
})

for (const file of SCHEMAS) {
  void test(`${file} explains every key`, (t) => {
    const schema = JSON.parse(textOf(file)) as Node
    t.ok(Object.keys(schema.properties ?? {}).length > 3)
    t.same(unexplained(schema), [])
    t.end()
  })
}

for (const file of SHIPPED) {
  void test(`an editor finds nothing wrong with ${file}`, (t) => {
    const named = /^# yaml-language-server: \$schema=(\S+)\n/.exec(textOf(file))?.[1] ?? ''
    const schema = join(dirname(file), named)
    t.ok(SCHEMAS.includes(schema), `its first line names ${schema}`)
    const editor = editorOf(schema)
    const tree = parse(textOf(file)) as Record<string, unknown>
    t.ok(editor.safeParse(tree).success)
    t.notOk(editor.safeParse({ ...tree, bogus: 1 }).success, 'and marks an unknown key')
    t.notOk(editor.safeParse({ ...tree, version: 2 }).success, 'and another version')
    t.end()
  })
}

void test('every policy that is shipped has its tests beside it', (t) => {
  for (const file of filesIn('policies', '.yaml')) {
    const tests = file.replace(/^policies\/(.*)\.yaml$/, 'policies/tests/$1.test.yaml')
    t.ok(existsSync(join(ROOT, tests)), tests)
    const named = (parse(textOf(tests)) as { readonly policy?: string }).policy ?? ''
    t.equal(resolve(ROOT, dirname(tests), named), join(ROOT, file), 'and they are of it')
  }
  t.end()
})

void test('a key without an explanation would be found, wherever it is', (t) => {
  const at = (schema: z.ZodType): readonly string[] => unexplained(z.toJSONSchema(schema, { io: 'input' }) as Node)
  const one = z.string().describe('What this one is for.')
  t.same(at(z.object({ one })), [])
  t.same(at(z.object({ one, two: z.string(), three: z.string().describe('x') })), ['/two', '/three'])
  t.same(at(z.object({ one: z.array(z.object({ two: one, three: z.number() })).describe('What these are for.') })), [
    '/one/-/three',
  ])
  t.same(at(z.object({ one: z.record(z.string(), z.object({ two: z.number() })).describe('What these are for.') })), [
    '/one/*/two',
  ])
  t.same(at(z.object({ one: z.union([one, z.object({ two: z.number() })]).describe('What it is for.') })), ['/one/two'])
  t.end()
})

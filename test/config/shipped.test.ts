/** The files that are shipped: what an operator starts from must be valid, quiet, and fit the schemas that editors read. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { parse } from 'yaml'
import { z } from 'zod'
import { prepare, SHIPPED_POLICY } from '../../src/prepare.ts'

const here = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))

void test('the shipped configuration is valid and draws no warning', (t) => {
  const prepared = prepare(here('config/threadwarden.yaml'), {})
  t.match(prepared, { ok: true, value: { warnings: [] } })
  t.end()
})

void test('an absent policy is the shipped one', (t) => {
  t.equal(SHIPPED_POLICY, here('policies/default.yaml'))
  t.end()
})

void test('the published schemas fit their source', (t) => {
  const { status, stderr } = spawnSync(process.execPath, [here('scripts/schemas.ts'), '--check'], { encoding: 'utf8' })
  t.same({ status, stderr }, { status: 0, stderr: '' })
  t.end()
})

for (const [schema, file] of [
  ['config/threadwarden.schema.json', 'config/threadwarden.yaml'],
  ['policies/policy.schema.json', 'policies/default.yaml'],
] as const) {
  void test(`an editor that reads ${schema} finds nothing wrong with ${file}`, (t) => {
    const editor = z.fromJSONSchema(JSON.parse(readFileSync(here(schema), 'utf8')) as Parameters<typeof z.fromJSONSchema>[0])
    const tree = parse(readFileSync(here(file), 'utf8')) as Record<string, unknown>
    t.ok(editor.safeParse(tree).success)
    t.notOk(editor.safeParse({ ...tree, bogus: 1 }).success, 'and marks an unknown key')
    t.notOk(editor.safeParse({ ...tree, version: 2 }).success, 'and another version')
    t.end()
  })
}

void test('the shipped configuration says unknownThread, issuers and upstream itself: there is no default for them', (t) => {
  const tree = parse(readFileSync(here('config/threadwarden.yaml'), 'utf8')) as Record<string, unknown>
  t.match(tree, { version: 1, ownership: { unknownThread: 'claim' }, upstream: { url: String, basePath: String } })
  t.end()
})

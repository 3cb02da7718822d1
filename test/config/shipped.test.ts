/** The files that are shipped: what an operator starts from must be valid, quiet, and fit the schemas that editors read. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { parse } from 'yaml'
import { DEFAULT_POLICY } from '../../src/config/policy-file.ts'
import { prepare } from '../../src/snapshot/load.ts'

const here = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))

void test('the shipped configuration is valid and draws no warning', (t) => {
  const prepared = prepare(here('config/threadwarden.yaml'), {})
  t.match(prepared, { ok: true, value: { warnings: [] } })
  t.end()
})

void test('an absent policy is the shipped one', (t) => {
  t.equal(DEFAULT_POLICY.path, here('policies/default.yaml'))
  t.end()
})

void test('the shipped configuration says unknownThread, issuers and upstream itself: there is no default for them', (t) => {
  const tree = parse(readFileSync(here('config/threadwarden.yaml'), 'utf8')) as Record<string, unknown>
  t.match(tree, { version: 1, ownership: { unknownThread: 'claim' }, upstream: { url: String, basePath: String } })
  t.end()
})

/** The alert rules: promtool accepts them, and every copy is the same. */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { parse, stringify } from 'yaml'
import { makeFolder } from '../../testing/support/gateway.ts'
import { ROOT } from '../suites/suites.ts'
import { objectsOf, one } from './builds.ts'

const RULES = join(ROOT, 'deploy/prometheus/threadwarden.rules.yml')

function promtool(groups: unknown): { readonly code: number | null; readonly output: string } {
  const { folder, remove } = makeFolder()
  try {
    writeFileSync(join(folder, 'rules.yml'), stringify(groups))
    const { status, stdout, stderr, error } = spawnSync('promtool', ['check', 'rules', join(folder, 'rules.yml')], {
      encoding: 'utf8',
    })
    if (error !== undefined) throw error
    return { code: status, output: stdout + stderr }
  } finally {
    remove()
  }
}

void test('promtool accepts the rules in the PrometheusRule', (t) => {
  const { spec } = one(objectsOf('standalone with everything and an Ingress'), 'PrometheusRule', 'threadwarden')
  const { groups } = parse(readFileSync(RULES, 'utf8')) as { groups: readonly { rules: readonly unknown[] }[] }
  t.match(promtool(spec), { code: 0, output: new RegExp(`SUCCESS: ${groups[0]?.rules.length} rules found`) })
  t.match(promtool({ groups: [{ name: 'x', rules: [{ alert: 'X', expr: 'up ==' }] }] }), { code: 1 })
  t.end()
})

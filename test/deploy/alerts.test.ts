/** The alert rules: promtool accepts them, and every copy is the same. */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { parse, stringify } from 'yaml'
import { makeFolder } from '../../testing/support/gateway.ts'
import { objectsOf, one } from './builds.ts'
import { RULES } from './recording.ts'

function promtool(command: 'check' | 'test', content: unknown): { readonly code: number | null; readonly output: string } {
  const { folder, remove } = makeFolder()
  try {
    const file = join(folder, 'rules.yml')
    writeFileSync(file, stringify(content))
    const { status, stdout, stderr, error } = spawnSync('promtool', [command, 'rules', file], { encoding: 'utf8' })
    if (error !== undefined) throw error
    return { code: status, output: stdout + stderr }
  } finally {
    remove()
  }
}

void test('promtool accepts the rules in the PrometheusRule', (t) => {
  const { spec } = one(objectsOf('standalone with everything and an Ingress'), 'PrometheusRule', 'threadwarden')
  const { groups } = parse(readFileSync(RULES, 'utf8')) as { groups: readonly { rules: readonly unknown[] }[] }
  t.match(promtool('check', spec), {
    code: 0,
    output: new RegExp(`SUCCESS: ${groups.flatMap(({ rules }) => rules).length} rules found`),
  })
  t.match(promtool('check', { groups: [{ name: 'x', rules: [{ alert: 'X', expr: 'up ==' }] }] }), { code: 1 })
  t.end()
})

void test('refused connections fire, from the first one for five minutes, and closed idle ones do not', (t) => {
  const alert = 'ThreadwardenConnectionsRefused'
  const summary = 'New connections are refused because all connections of listen.connections are in use.'
  const runbook_url = `https://github.com/threadwarden/threadwarden/blob/main/docs/how-to/operate/alerts.md#${alert.toLowerCase()}`
  const over = (outcome: string, values: string) => ({
    series: `threadwarden_connections_over_limit_total{outcome="${outcome}"}`,
    values,
  })
  const at = (eval_time: string, exp_alerts: readonly object[]) => ({ eval_time, alertname: alert, exp_alerts })
  const firing = { exp_labels: { severity: 'warning', outcome: 'refused' }, exp_annotations: { summary, runbook_url } }
  const input_series = [over('idle-closed', '0+5x20'), over('refused', '0x4 1x15')]
  const tests = [{ interval: '1m', input_series, alert_rule_test: [at('4m', []), at('5m', [firing]), at('15m', [])] }]
  t.match(promtool('test', { rule_files: [RULES], tests }), { code: 0 })
  t.end()
})

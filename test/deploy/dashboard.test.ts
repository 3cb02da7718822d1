/** The Grafana dashboard: a real Prometheus that scrapes real gateways has data for each of its queries. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { call, runInput } from '../../testing/support/client.ts'
import { gateBefore, gated, type Gated } from '../../testing/support/gated.ts'
import { issuersOf } from '../../testing/support/gates.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { startMisbehaving } from '../../testing/support/issuer-that-misbehaves.ts'
import { startPrometheus } from '../../testing/support/prometheus.ts'
import { secureFiles } from '../../testing/support/secure.ts'
import { ruled } from '../../testing/support/policies.ts'
import { claims, PAIRS, token } from '../../testing/support/signing.ts'
import type { Answering } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'
import { ROOT } from '../suites/suites.ts'

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly datasource?: unknown
  readonly targets?: readonly { readonly expr: string; readonly datasource: unknown }[]
}

const { panels, templating } = JSON.parse(readFileSync(join(ROOT, 'deploy/observability/grafana-dashboard.json'), 'utf8')) as {
  readonly panels: readonly Panel[]
  readonly templating: { readonly list: readonly { readonly name: string; readonly query: unknown }[] }
}

const DATASOURCE = { type: 'prometheus', uid: '${datasource}' }

void test('the dashboard has a row for each subject, its panels have places of their own, and its data source is a variable', (t) => {
  const rowTitles = panels.filter(({ type }) => type === 'row').map(({ title }) => title)
  t.same(rowTitles, ['Traffic', 'Refusals', 'Latency', 'Upstream', 'Store', 'Issuers', 'Streams', 'Resources'])
  t.same(
    templating.list.map(({ name }) => name),
    ['datasource', 'instance'],
  )
  t.equal(new Set(panels.map(({ id }) => id)).size, panels.length)
  for (const { title, datasource, targets = [] } of panels.filter(({ type }) => type !== 'row')) {
    t.same(datasource, DATASOURCE, title)
    t.ok(targets.length > 0, title)
    for (const target of targets) {
      t.same(target.datasource, DATASOURCE, title)
      t.match(target.expr, 'instance=~"$instance"', title)
    }
  }
  const taken = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, at) => `${x + (at % w)}/${y + Math.floor(at / w)}`),
  )
  t.equal(new Set(taken).size, taken.length)
  t.ok(panels.every(({ gridPos: { x, w } }) => x + w <= 24))
  t.end()
})

/** Runs are streams that end a moment later; what else is asked gets no answer. */
const upstream: Answering = (request, response) => {
  if (!request.target.endsWith('/run')) return void response.destroy()
  response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
  setTimeout(() => response.end(), 20)
}

/** A gateway with TLS and an issuer whose keys it fetches, in observe mode, beside a shadow policy that allows no run. */
async function observing(t: Test, url: string): Promise<Gated> {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const shadowPolicy = join(folder, 'shadow.yaml')
  writeFileSync(shadowPolicy, ruled([{ routes: ['info'], allow: ['signed-in'] }]))
  const issuer = await startMisbehaving(t)
  const issuers = issuersOf(t, { corp: { algorithms: ['RS256'], jwksUri: `${issuer.url}/jwks` } })
  const config = {
    ...secureFiles(t).listen(),
    authentication: { issuers },
    ownership: { unknownThread: 'deny' },
    enforcement: 'observe',
    shadowPolicy,
    audit: { to: 'file', file: './audit.jsonl' },
  }
  return gateBefore(t, url, { config })
}

async function valuesOf(prometheus: string, expr: string): Promise<readonly string[]> {
  const query = expr.replaceAll('$instance', '.*').replaceAll('$__rate_interval', '10s')
  const answer = await call(`${prometheus}/query?query=${encodeURIComponent(query)}`)
  const { data, error } = JSON.parse(answer.text) as { data?: { result: { value: [number, string] }[] }; error?: string }
  if (data === undefined) throw new Error(`${expr}: ${error}`)
  return data.result.map(({ value: [, value] }) => value)
}

void test('each query has data', async (t) => {
  const gate = await gated(t, upstream, { config: { audit: { to: 'file', file: './audit.jsonl' } } })
  const other = await observing(t, gate.upstream.url)
  const good = token({ alg: 'RS256', kid: 'k1' }, claims(), PAIRS.rsa.privateKey)
  const prometheus = await startPrometheus(t, {
    targets: [gate, other].map(({ gateway }) => new URL(gateway.healthUrl).host),
    interval: '1s',
  })
  let round = 0
  const traffic = async (): Promise<void> => {
    round += 1
    const input = runInput(`t-${round}`)
    await call(`${gate.base}/agent/default/run`, { token: gate.alice, body: input })
    await call(`${gate.base}/agent/default/run`, { token: gate.bob, body: input })
    await call(`${gate.base}/info?unknown=1`, { token: gate.alice })
    await call(`${gate.base}/info`)
    await other.gateway.ask({ target: '/api/copilotkit/agent/default/run', token: good, body: JSON.stringify(input) })
    // Not a handshake.
    await fetch(other.gateway.url.replace('https:', 'http:')).catch(() => {})
  }
  const missing = new Set(panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)))
  const count = missing.size
  // Rates need a change between two scrapes.
  const hasAll = async (): Promise<boolean> => {
    await traffic()
    for (const expr of missing) if ((await valuesOf(prometheus, expr)).some((value) => value !== 'NaN')) missing.delete(expr)
    return missing.size === 0 || round > 400
  }
  await until(hasAll)
  t.same([...missing], [])
  t.ok(count > 40)
  const [variable] = templating.list.filter(({ name }) => name === 'instance')
  t.match(variable?.query, { query: 'label_values(threadwarden_build_info, instance)' })
  t.equal((await valuesOf(prometheus, 'threadwarden_build_info{instance=~"$instance"}')).length, 2)
})

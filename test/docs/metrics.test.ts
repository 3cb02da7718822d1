/** docs/reference/metrics.md: a running gateway has these metrics and no others, with these types, labels and help texts. */
import { test } from 'tap'
import { makeBudget } from '../../src/http/pipeline/request-body.ts'
import { makeMetrics } from '../../src/observe/metrics.ts'
import { gated } from '../../testing/support/gated.ts'
import { call } from '../../testing/support/client.ts'
import { code, page, rows } from './markdown.ts'

const PAGE = page('docs/reference/metrics.md')

interface Written {
  readonly type: string
  readonly labels: readonly string[]
  readonly meaning: string
}

const written = new Map(
  rows(PAGE.text).map(([name, type = '', labels = '', meaning = '']): [string, Written] => [
    code(name) ?? '',
    { type, labels: Array.from(labels.matchAll(/`([^`]+)`/g), ([, label = '']) => label), meaning },
  ]),
)

void test('a running gateway has the metrics of the page', async (t) => {
  const { gateway } = await gated(t)
  const { text } = await call(`${gateway.healthUrl}/metrics`)
  const helps = new Map(
    Array.from(text.matchAll(/^# HELP (threadwarden_\S+) (.*)$/gm), ([, name = '', help = '']) => [name, help]),
  )
  const types = new Map(
    Array.from(text.matchAll(/^# TYPE (threadwarden_\S+) (.*)$/gm), ([, name = '', type = '']) => [name, type]),
  )
  t.same([...written.keys()].toSorted(), [...helps.keys()].toSorted())
  for (const [name, { type, meaning }] of written) {
    t.equal(types.get(name), type, name)
    t.ok(meaning.startsWith(helps.get(name) ?? '?'), `${name} begins with its help text: ${helps.get(name)}`)
  }
  const others = Array.from(text.matchAll(/^# TYPE (\S+)/gm), ([, name = '']) => name).filter((name) => !types.has(name))
  for (const name of others) t.match(name, /^(?:process|nodejs)_/, name)
})

void test('each metric has the labels of its row', async (t) => {
  const metrics = makeMetrics()
  metrics.requests.decided('none', 'permitted')
  metrics.requests.wouldRefuse('agent/run', 'thread-foreign')
  metrics.requests.shadowDiffered('agent/run', 'permitted', 'undecided')
  metrics.requests.upstreamFailed('upstream-unreachable')
  metrics.requests.claimed('new')
  metrics.requests.dropped('body-key', 1)
  metrics.requests.interruptAnswered('approved', 'permitted')
  metrics.requests.tokens('reported', 1)
  for (const part of ['request', 'gateway', 'upstream'] as const) metrics.requests.took(part, 'agent/run', 200, 1)
  metrics.streams.streamClosed('complete', 1)
  await metrics.store.timed('access', 'sqlite', () => Promise.resolve())()
  metrics.keys.keyFetchFailed('corp')
  metrics.keys.keysStale('corp')
  metrics.keys.keysFetched('corp', 0)
  metrics.configuration.reloaded('reloaded', 2)
  metrics.connections.overLimit('refused')
  metrics.readiness.condition('upstream', true)
  metrics.runtimes.runtime('', '1.75.0')
  const budget = makeBudget(1)
  metrics.memory.budgets({ bodies: budget, reading: budget, answers: budget })
  metrics.tls.handshakeFailed('timeout')
  metrics.tls.presented([{ name: 'listen.tls', until: 0 }])
  const figures = await metrics.figures()
  for (const { name, values } of figures as unknown as readonly { name: string; values: readonly { labels: object }[] }[]) {
    const labels = written.get(name)?.labels
    // The bound of a bucket is no label of the metric.
    const own = Object.keys(values[0]?.labels ?? {}).filter((label) => label !== 'le')
    if (labels !== undefined) t.same(own, labels, name)
  }
})

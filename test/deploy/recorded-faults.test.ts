/**
 * Each alert fires, and no other one does, on the figures of a real gateway that has the fault: the rules are tested with what
 * the code reports, not with series that a person wrote.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { test, type Test } from 'tap'
import { parse } from 'yaml'
import { openAuditSink } from '../../src/audit/sinks.ts'
import { makeLog } from '../../src/observe/log.ts'
import { makeMetrics } from '../../src/observe/metrics.ts'
import { call, runInput } from '../../testing/support/client.ts'
import { openRun } from '../../testing/support/event-stream.ts'
import { gateBefore, gated, NOWHERE, type Gated, type GatedOptions, type GatedUpstream } from '../../testing/support/gated.ts'
import { guarded } from '../../testing/support/guarded.ts'
import { startMisbehaving } from '../../testing/support/issuer-that-misbehaves.ts'
import { inDays } from '../../testing/support/issuing.ts'
import { openRaw } from '../../testing/support/raw.ts'
import { secureFiles } from '../../testing/support/secure.ts'
import { claims, PAIRS, token } from '../../testing/support/signing.ts'
import { events, json } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'
import { replays, RULES, scrape, scrapeOf, type Scrape } from './recording.ts'

const scraped = ({ gateway }: Pick<Gated, 'gateway'>): Promise<Scrape> => scrape(gateway.healthUrl)

const value = (scrapes: Scrape, name: string): number =>
  [...scrapes].reduce((sum, [series, one]) => (series.startsWith(`${name}{`) ? sum + one : sum), 0)

const STORE_PENDING = 'threadwarden_readiness_pending{job="threadwarden",instance="gateway",condition="store"}'

/** Runs of alice, each on a thread of its own. */
async function runs({ base, alice }: Gated, count: number, prefix: string): Promise<readonly number[]> {
  const all = Array.from({ length: count }, (_, at) =>
    call(`${base}/agent/default/run`, { token: alice, body: runInput(`${prefix}-${at}`) }),
  )
  return (await Promise.all(all)).map(({ status }) => status)
}

/** A gateway that has served some runs. */
async function served(t: Test, options: GatedOptions = {}): Promise<GatedUpstream> {
  const gate = await gated(t, events(), options)
  await until(async () => value(await scraped(gate), 'threadwarden_readiness_pending') === 0)
  t.same(new Set(await runs(gate, 5, 'before')), new Set([200]))
  return gate
}

/** A scrape before, and one after each round. */
async function rounds(gate: Gated, round: (number: number) => Promise<unknown>, count = 2): Promise<readonly Scrape[]> {
  const scrapes = [await scraped(gate)]
  for (let number = 1; number <= count; number += 1) {
    await round(number)
    scrapes.push(await scraped(gate))
  }
  return scrapes
}

async function repeated(count: number, ask: () => Promise<unknown>): Promise<void> {
  for (let left = count; left > 0; left -= 10) await Promise.all(Array.from({ length: Math.min(left, 10) }, ask))
}

const expected = new Set<string>()

function fires(t: Test, playback: Parameters<typeof replays>[1]): void {
  for (const alerts of Object.values(playback.firing)) for (const alert of alerts) expected.add(`Threadwarden${alert}`)
  replays(t, playback)
}

void test('promtool has no objection to the names and units of the metrics', async (t) => {
  const gate = await served(t)
  await call(`${gate.base}/nowhere`, { token: 'nonsense' })
  const { text } = await call(`${gate.gateway.healthUrl}/metrics`)
  const { status, stderr } = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' })
  t.notMatch(stderr, /threadwarden_/)
  t.ok(status === 0 || stderr.includes('nodejs_'), stderr)
})

void test('a gateway without a fault raises no alert', async (t) => {
  const gate = await served(t)
  const scrapes = await rounds(gate, async (number) => {
    await runs(gate, 20, `round-${number}`)
    await call(`${gate.base}/info`)
    await call(`${gate.base}/info`, { token: gate.alice })
  })
  fires(t, { scrapes, pace: 'goes-on', firing: { 2: [], 30: [], 90: [] } })
})

void test('a gateway that is gone', async (t) => {
  const gate = await served(t)
  const before = await scraped(gate)
  await gate.gateway.close()
  fires(t, { scrapes: [before, await scraped(gate)], firing: { 2: [], 4: ['Down'] } })
})

void test('an upstream that answers with errors', async (t) => {
  const gate = await served(t)
  gate.upstream.answer(json({}, 500))
  const scrapes = await rounds(gate, (number) => runs(gate, 20, `failing-${number}`))
  fires(t, { scrapes, pace: 'goes-on', firing: { 0: [], 3: ['ErrorsFast'], 70: ['ErrorsFast', 'ErrorsSlow'] } })
})

void test('a store whose file another process keeps locked for a moment, again and again', async (t) => {
  const gate = await served(t)
  const other = new Database(join(gate.gateway.folder, 'ownership.db'))
  t.teardown(() => other.close())
  const scrapes = await rounds(gate, async (number) => {
    other.exec('BEGIN IMMEDIATE')
    const all = runs(gate, 5, `slow-${number}`)
    await sleep(300)
    other.exec('COMMIT')
    t.same(new Set(await all), new Set([200]))
  })
  fires(t, {
    scrapes,
    pace: 'goes-on',
    slow: 'gateway_duration',
    firing: { 0: [], 3: ['LatencyFast'], 70: ['LatencyFast', 'LatencySlow'] },
  })
})

void test('a store that fails', async (t) => {
  const gate = await served(t)
  const other = new Database(join(gate.gateway.folder, 'ownership.db'))
  t.teardown(() => other.close())
  const before = await scraped(gate)
  other.exec('ALTER TABLE threads RENAME TO gone')
  const scrapes = await rounds(gate, async (number) => t.same(new Set(await runs(gate, 5, `refused-${number}`)), new Set([503])))
  other.exec('ALTER TABLE gone RENAME TO threads')
  fires(t, { scrapes: [before, ...scrapes], firing: { 0: [], 3: ['ErrorsFast', 'StoreUnavailable'] } })
})

void test('a store that another process keeps locked, while all threads are known', async (t) => {
  const gate = await served(t)
  const before = await scraped(gate)
  const other = new Database(join(gate.gateway.folder, 'ownership.db'))
  t.teardown(() => other.close())
  other.exec('BEGIN IMMEDIATE')
  await until(async () => (await scraped(gate)).get(STORE_PENDING) === 1)
  fires(t, { scrapes: [before, await scraped(gate)], firing: { 1: [], 4: ['StoreUnavailable'] } })
})

const corpOf = (url: string) => ({ corp: { algorithms: ['RS256'], jwksUri: `${url}/jwks` } })
const good = token({ alg: 'RS256', kid: 'k1' }, claims(), PAIRS.rsa.privateKey)

void test('an issuer that is down from the start', async (t) => {
  const issuer = await startMisbehaving(t)
  issuer.misbehave('answers 500')
  const gate = await guarded(t, corpOf(issuer.url))
  const asked = () => gate.fate(good)
  const scrapes = [await scraped(gate)]
  for (let round = 0; round < 2; round += 1) {
    for (let at = 0; at < 5; at += 1) t.match(await asked(), /^503 keys-unavailable/)
    scrapes.push(await scraped(gate))
  }
  fires(t, {
    scrapes,
    pace: 'goes-on',
    firing: { 0: [], 3: ['ErrorsFast', 'KeysUnavailable'], 8: ['ErrorsFast', 'KeysUnavailable', 'NotReady'] },
  })
})

void test('an issuer that fails after it gave its keys', async (t) => {
  const running = Date.now
  t.teardown(() => void (Date.now = running))
  let ahead = 0
  Date.now = () => running() + ahead
  const issuer = await startMisbehaving(t)
  const gate = await guarded(t, corpOf(issuer.url))
  await until(() => issuer.fetches() === 1)
  await gate.fate(good)
  const before = await scraped(gate)
  issuer.misbehave('hangs up')
  ahead = 600_001
  await until(async () => value(await scraped(gate), 'threadwarden_issuer_keys_stale') === 1)
  fires(t, { scrapes: [before, await scraped(gate)], firing: { 14: [], 17: ['IssuerKeysStale'] } })
})

void test('an upstream that does not say which transport it speaks', async (t) => {
  const gate = await gateBefore(t, NOWHERE, { config: { upstream: { transport: 'auto' } } })
  fires(t, { scrapes: [await scraped(gate)], firing: { 1: [], 3: ['UpstreamUnknown'] } })
})

void test('a request on which the gateway fails', async (t) => {
  // There is no known way to make a real one fail.
  const metrics = makeMetrics()
  const scrapes: Scrape[] = []
  for (let round = 0; round < 2; round += 1) {
    metrics.requests.decided('info', 'internal')
    scrapes.push(scrapeOf((await metrics.expose()).text))
  }
  fires(t, { scrapes, firing: { 0: [], 1: ['InternalError'] } })
})

void test('a change that is refused', async (t) => {
  const gate = await served(t)
  const before = await scraped(gate)
  writeFileSync(gate.gateway.file, '{}')
  await gate.gateway.reload('test')
  fires(t, { scrapes: [before, await scraped(gate)], firing: { 5: [], 7: ['ReloadRefused'] } })
})

void test('an audit file on a full disk', async (t) => {
  // The file is the gateway's own. Requests would take long to make 8 MiB of lines.
  const metrics = makeMetrics()
  const log = makeLog('silent', { write: () => {} })
  const scrapeNow = async (): Promise<Scrape> => scrapeOf((await metrics.expose()).text)
  const sink = openAuditSink({ to: 'file', file: '/dev/full' }, { log, metrics: metrics.audit, note: () => {} })
  t.teardown(() => sink?.stop())
  const before = await scrapeNow()
  await until(async () => {
    sink?.write(`${'x'.repeat(2 ** 20)}\n`)
    return value(await scrapeNow(), 'threadwarden_audit_lost_total') > 0
  })
  fires(t, { scrapes: [before, await scrapeNow()], firing: { 0: [], 2: ['AuditLost'] } })
})

void test('an upstream that breaks off in first runs', async (t) => {
  const gate = await served(t)
  await until(async () => value(await scraped(gate), 'threadwarden_unconfirmed_claims') === 0)
  const before = await scraped(gate)
  gate.upstream.answer((_request, response) => void response.destroy())
  t.same(new Set(await runs(gate, 20, 'broken')), new Set([502]))
  await until(async () => value(await scraped(gate), 'threadwarden_unconfirmed_claims') === 20)
  fires(t, { scrapes: [before, await scraped(gate)], firing: { 0: [], 2: ['UnconfirmedClaims'], 90: [] } })
})

void test('a user who asks for the threads of another', async (t) => {
  const gate = await served(t)
  const ask = () => call(`${gate.base}/threads/before-1/messages`, { token: gate.bob })
  t.equal((await ask()).status, 403)
  const scrapes = await rounds(gate, () => repeated(75, ask))
  fires(t, {
    scrapes,
    pace: 'goes-on',
    firing: { 2: [], 12: ['RefusalsJump'], 40: ['ForeignThreads', 'RefusalsJump'] },
  })
})

void test('an upstream that breaks off answers', async (t) => {
  const gate = await served(t)
  gate.upstream.answer((_request, response) => void response.destroy())
  const scrapes = await rounds(gate, () => repeated(75, () => call(`${gate.base}/info`, { token: gate.alice })))
  fires(t, { scrapes, pace: 'goes-on', firing: { 0: [], 3: ['ErrorsFast'], 15: ['ErrorsFast', 'UpstreamErrors'] } })
})

void test('an upstream that is slow to answer', async (t) => {
  const gate = await served(t)
  gate.upstream.answer(async (request, response) => {
    await sleep(2600)
    return events()(request, response)
  })
  const scrapes = await rounds(gate, (number) => runs(gate, 20, `slow-${number}`))
  fires(t, { scrapes, pace: 'goes-on', slow: 'upstream_first_byte', firing: { 3: [], 12: ['UpstreamSlow'] } })
})

void test('more connections than the limit', async (t) => {
  const most = 16
  const gate = await gated(
    t,
    (_request, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n'),
    { config: { listen: { host: '127.0.0.1', port: 0, connections: most } } },
  )
  await until(async () => value(await scraped(gate), 'threadwarden_readiness_pending') === 0)
  const before = await scraped(gate)
  const streams = []
  for (let at = 0; at < most; at += 1) {
    const stream = await openRun(gate, `t${at}`)
    await stream.until('data: 1')
    streams.push(stream)
  }
  const refused = await openRaw(gate.gateway.url)
  await refused.ended()
  fires(t, { scrapes: [before, await scraped(gate)], firing: { 0: [], 2: ['ConnectionsRefused'], 10: [] } })
  for (const stream of streams) stream.destroy()
})

void test('a certificate that ends in three days', async (t) => {
  const files = secureFiles(t)
  const alone = { config: files.listen() }
  const before = await scraped(await gateBefore(t, NOWHERE, alone))
  fires(t, { scrapes: [before], firing: { 3: ['UpstreamUnknown'], 70: ['UpstreamUnknown'] } })
  files.write(files.authority.issue({ usage: 'server', until: inDays(3) }))
  const after = await scraped(await gateBefore(t, NOWHERE, alone))
  fires(t, { scrapes: [after], firing: { 3: ['UpstreamUnknown'], 70: ['CertificateExpires', 'UpstreamUnknown'] } })
  files.write(files.authority.issue({ usage: 'server', until: inDays(-1) }))
  const expired = await scraped(await gateBefore(t, NOWHERE, alone))
  fires(t, { scrapes: [expired], firing: { 3: ['CertificateExpired', 'UpstreamUnknown'] } })
})

void test('observe mode that is not ended', async (t) => {
  const gate = await served(t, { config: { enforcement: 'observe' } })
  fires(t, { scrapes: [await scraped(gate)], interval: '1h', firing: { 718: [], 721: ['NotEnforcing'] } })
})

void test('the faults above raise every alert of the rules', (t) => {
  const { groups } = parse(readFileSync(RULES, 'utf8')) as { groups: readonly { rules: readonly { alert?: string }[] }[] }
  const alerts = groups.flatMap(({ rules }) => rules.flatMap(({ alert }) => (alert === undefined ? [] : [alert])))
  t.same([...expected].toSorted(), alerts.toSorted())
  t.end()
})

/** One endpoint has the figures of all workers: sums of what is counted, and of a state the one that operators have to see. */
import { test } from 'tap'
import { until } from '../../testing/support/until.ts'
import { startScene } from './scene.ts'

const REFUSED = 'threadwarden_decisions_total{route="none",reason="token-malformed"}'
const ANSWERED = 'threadwarden_request_duration_seconds_count{route="none",status_class="4xx"}'

void test('what the workers count is added up, and does not fall when one dies', async (t) => {
  const scene = await startScene(t)
  const workers = await scene.workers()
  for (const worker of workers.values()) for (let at = 0; at < 3; at += 1) await worker.ask('nonsense', '/info')
  t.equal(await scene.figure(REFUSED), 6)
  // Opening connections to all workers takes requests as well.
  const answered = await scene.figure(ANSWERED)
  t.ok(answered >= 6)
  process.kill(scene.processOf(1), 'SIGKILL')
  await scene.line(({ msg }) => String(msg).startsWith('a worker exited'))
  t.equal(await scene.figure(REFUSED), 6)
  t.equal(await scene.figure(ANSWERED), answered)
  for (const worker of (await scene.workers()).values()) await worker.ask('nonsense', '/info')
  t.equal(await scene.figure(REFUSED), 8)
  t.ok((await scene.figure(ANSWERED)) > answered)
})

void test('states are not added up', async (t) => {
  const scene = await startScene(t, { config: { enforcement: 'observe' } })
  t.equal(await scene.figure('threadwarden_build_info{'), 1)
  t.equal(await scene.figure('threadwarden_observing '), 1)
  t.equal(await scene.figure('threadwarden_config_generation '), 1)
  t.equal(await scene.figure('threadwarden_config_last_reload_successful '), 1)
  t.equal(await scene.figure('threadwarden_issuer_keys_stale{issuer="corp"}'), 0)
  const loadedAt = 'threadwarden_config_last_reload_success_timestamp_seconds '
  const started = await scene.figure(loadedAt)
  process.kill(scene.processOf(1), 'SIGKILL')
  await scene.line(({ msg }) => String(msg).startsWith('a worker exited'))
  await scene.workers()
  t.equal(await scene.figure(loadedAt), started, 'the start of a worker is no reload')
  scene.write({ limits: { newThreads: '9/m' } })
  t.equal((await scene.operate('/reload', undefined, 'POST')).status, 200)
  t.equal(await scene.figure('threadwarden_config_generation '), 2)
  t.equal(await scene.figure('threadwarden_config_reloads_total{outcome="reloaded"}'), 1)
  scene.write({ version: 7 })
  t.equal((await scene.operate('/reload', undefined, 'POST')).status, 409)
  t.equal(await scene.figure('threadwarden_config_last_reload_successful '), 0)
  t.equal(await scene.figure('threadwarden_config_generation '), 2)
})

void test('the budget is that of all workers, and the primary alone looks for unconfirmed claims', async (t) => {
  const scene = await startScene(t, { config: { limits: { bodiesInFlight: '8MiB', runBody: '1MiB' } } })
  t.equal(await scene.figure('threadwarden_memory_budget_bytes{use="bodies"}'), 8 * 2 ** 20)
  t.equal(await scene.figure('threadwarden_memory_budget_used_bytes{use="bodies"}'), 0)
  t.equal(await scene.figure('threadwarden_readiness_pending{condition="keys:corp"}'), 0)
  t.equal(await scene.figure('threadwarden_readiness_pending{condition="workers"}'), 0)
  const looks = 'threadwarden_store_operation_duration_seconds_count{operation="unconfirmed",engine="sqlite"}'
  await until(async () => (await scene.figure(looks)) === 1)
  t.equal(await scene.figure('threadwarden_unconfirmed_claims '), 0)
})

void test('open streams are those of all workers, without those of one that died', async (t) => {
  const scene = await startScene(t)
  const workers = [...(await scene.workers()).values()]
  const alice = scene.sign('alice')
  await workers[0]!.run(alice, 't1')
  for (const worker of workers) await worker.connect(alice, 't1')
  await until(async () => (await scene.figure('threadwarden_open_streams ')) === 2)
  process.kill(scene.processOf(2), 'SIGKILL')
  await until(async () => (await scene.figure('threadwarden_open_streams ')) === 1)
})

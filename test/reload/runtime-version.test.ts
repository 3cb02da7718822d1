/** What the gateway reports of the version of a runtime: a metric, a line for one that is newer, and one for headers of callers. */
import { test, type Test } from 'tap'
import { openUpstream } from '../../src/http/upstream/upstream.ts'
import { makeTransportProbe } from '../../src/http/upstream/transport-probe.ts'
import { makeReadiness } from '../../src/http/listeners/readiness.ts'
import { makeLog } from '../../src/observe/log.ts'
import { until } from '../../testing/support/until.ts'
import { INFO, json, startUpstream } from '../../testing/support/upstream.ts'
import { startScene, type Scene } from './scene.ts'

/** The URL of an upstream that says that it has this version. */
async function runtimeOf(t: Test, version: string): Promise<string> {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  upstream.answerQuestions(json({ ...INFO, version }))
  return upstream.url
}

async function figures({ health }: Scene): Promise<readonly string[]> {
  const { text } = await health('/metrics')
  return text.split('\n').filter((line) => line.startsWith('threadwarden_runtime_info'))
}

const NEWER = /^the runtime is newer than the newest version that this gateway is tested with/
const REPLACED = /^forwardHeaders names x-\* headers, and this version of the runtime lets them replace those of an agent/

const said = ({ lines }: Scene, message: RegExp) => lines.filter(({ msg }) => message.test(String(msg)))

async function put(t: Test, scene: Scene, changes: Parameters<Scene['write']>[0]): Promise<void> {
  scene.write(changes)
  t.equal((await scene.gateway.reload('test')).outcome, 'reloaded')
}

void test('a tested version is a metric, and no line of the log', async (t) => {
  const scene = await startScene(t)
  t.same(await figures(scene), ['threadwarden_runtime_info{upstream="",version="1.75.0",tested="yes"} 1'])
  t.same([...said(scene, NEWER), ...said(scene, REPLACED)], [])
})

void test('a newer runtime is named in the log, once, and in the metric', async (t) => {
  const url = await runtimeOf(t, '1.76.0')
  const scene = await startScene(t, { 'upstream.url': url, forwardHeaders: ['x-tenant'] })
  t.match(said(scene, NEWER), [{ level: 'warn', version: '1.76.0', tested: '1.75.0' }])
  t.same(await figures(scene), ['threadwarden_runtime_info{upstream="",version="1.76.0",tested="newer"} 1'])
  await put(t, scene, { 'upstream.url': url, forwardHeaders: ['x-other'] })
  t.equal(said(scene, NEWER).length, 1, 'a reload that keeps the upstream does not repeat it')
  t.same(said(scene, REPLACED), [], 'its agents keep their headers')
  await put(t, scene, { 'upstream.url': await runtimeOf(t, '1.74.0') })
  await until(
    async () => (await figures(scene)).join() === 'threadwarden_runtime_info{upstream="",version="1.74.0",tested="no"} 1',
  )
})

void test('headers of callers that replace those of an agent are warned of, once for each version and their names', async (t) => {
  const url = await runtimeOf(t, '1.62.2')
  const scene = await startScene(t, { 'upstream.url': url })
  t.same(said(scene, REPLACED), [], 'none is forwarded')
  await put(t, scene, { 'upstream.url': url, forwardHeaders: ['accept-charset'] })
  t.same(said(scene, REPLACED), [], 'the runtime does not copy it')
  const forwardHeaders = ['X-Tenant', 'accept-charset', 'x-team']
  await put(t, scene, { 'upstream.url': url, forwardHeaders })
  t.match(said(scene, REPLACED), [{ level: 'warn', version: '1.62.2', headers: ['X-Tenant', 'x-team'], since: '1.62.3' }])
  await put(t, scene, { 'upstream.url': url, forwardHeaders, 'cors.origins': ['https://chat.example.com'] })
  await put(t, scene, { 'upstream.url': await runtimeOf(t, '1.62.3'), forwardHeaders })
  await until(async () => /1\.62\.3/.test((await figures(scene)).join()))
  t.equal(said(scene, REPLACED).length, 1)
  await put(t, scene, { 'upstream.url': await runtimeOf(t, '1.61.2'), forwardHeaders })
  await until(() => said(scene, REPLACED).length === 2)
})

void test('with several upstreams, each has its version, and one that is removed leaves the metric', async (t) => {
  const legal = {
    url: await runtimeOf(t, '1.77.0'),
    basePath: '/legal',
    publicPath: '/legal',
    unknownThread: 'deny',
    scope: 'legal',
  }
  const scene = await startScene(t)
  await put(t, scene, { 'upstreams.legal': legal })
  t.same((await figures(scene)).toSorted(), [
    'threadwarden_runtime_info{upstream="",version="1.75.0",tested="yes"} 1',
    'threadwarden_runtime_info{upstream="legal",version="1.77.0",tested="newer"} 1',
  ])
  t.match(said(scene, NEWER), [{ upstream: 'legal', version: '1.77.0' }])
  await put(t, scene, {})
  t.same(await figures(scene), ['threadwarden_runtime_info{upstream="",version="1.75.0",tested="yes"} 1'])
})

void test('what does not have the form of a version is no label', async (t) => {
  for (const version of ['9.9.9<b>', '1.76', `1.76.0-${'x'.repeat(30)}`, '1.76.0-a b', '1234567.0.0']) {
    const scene = await startScene(t, { 'upstream.url': await runtimeOf(t, version) })
    t.same(await figures(scene), ['threadwarden_runtime_info{upstream="",version="unknown",tested="unknown"} 1'], version)
    t.same(said(scene, NEWER), [], version)
  }
})

void test('a runtime that is upgraded and is otherwise the same is noticed', async (t) => {
  const asked = await startUpstream()
  t.teardown(() => asked.close())
  const upstream = openUpstream({ url: asked.url, timeouts: { connect: 1000, headers: 1000, body: 0 } })
  t.teardown(() => upstream.close())
  const versions: string[] = []
  const probe = makeTransportProbe({
    upstream,
    basePath: '/api/copilotkit',
    headers: {},
    named: null,
    readiness: makeReadiness(),
    onNews: () => {},
    onVersion: (version) => void versions.push(version),
    log: makeLog('silent'),
    intervals: { pending: 5, known: 5 },
  })
  t.teardown(() => probe.stop())
  await probe.start()
  t.same(versions, ['1.75.0'])
  asked.answerQuestions(json({ ...INFO, version: '1.76.0' }))
  await until(() => versions.at(-1) === '1.76.0')
})

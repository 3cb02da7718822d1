/** deploy/kubernetes: kubectl builds every base and overlay, and the result is valid and fits together. */
import { globSync } from 'node:fs'
import { dirname } from 'node:path'
import { test } from 'tap'
import { BUILDS, built, BUILT, configured, FOLDER, objectsOf, one, RUNTIME, STANDALONE } from './builds.ts'
import { validateConfigurations } from './configurations.ts'
import { findings } from './findings.ts'
import { objectsIn, selects, workloadsOf, type KubernetesObject, type Labels } from './objects.ts'
import { typeErrors, type Named } from './types.ts'

void test('every base, overlay and component is built by a test', (t) => {
  const folders = globSync('**/kustomization.yaml', { cwd: FOLDER }).map((file) => dirname(file))
  const inOverlays = ['components/sidecar', 'components/sidecar-sqlite', 'components/runtime-network-policy', 'components/sqlite']
  const tested = [
    ...BUILDS.map(({ path }) => path),
    ...BUILDS.flatMap(({ components = [] }) => components.map((name) => `components/${name}`)),
    ...inOverlays,
  ]
  t.same(
    folders.filter((folder) => !tested.includes(folder)),
    [],
  )
  t.end()
})

void test('every object has the types of Kubernetes and no unknown key', async (t) => {
  const all: readonly Named[] = BUILT.flatMap(({ name, objects }) => objects.map((object) => ({ from: name, object })))
  t.ok(all.length > 100)
  t.same(await typeErrors(all), [])
})

void test('a wrong value, a wrong type and an unknown key are found', async (t) => {
  const changed = (from: string, object: KubernetesObject, spec: object): Named => ({
    from,
    object: { ...object, spec: { ...(object.spec as object), ...spec } },
  })
  const service = one(objectsOf('standalone'), 'Service', 'threadwarden')
  const route = one(objectsOf('standalone with the Gateway API'), 'HTTPRoute', 'threadwarden')
  const rule = one(objectsOf('standalone with the Gateway API'), 'PrometheusRule', 'threadwarden')
  const found = await typeErrors([
    changed('wrong type', service, { ports: [{ port: 'eighty' }] }),
    changed('unknown key', service, { selektor: {} }),
    changed('unknown key inside', service, { ports: [{ port: 80, target: 1 }] }),
    changed('unknown key of a custom resource', route, { timeout: '0s' }),
    changed('wrong value', rule, { groups: [{ name: 'x', rules: [{ alert: 'X', expr: 'up', for: 'two minutes' }] }] }),
  ])
  t.match(found, [
    /^wrong type: .*port must be integer/,
    /^wrong value: .*for must match pattern/,
    /^wrong type: .*not assignable/,
    /^unknown key: .*selektor/,
    /^unknown key inside: .*target/,
    /^unknown key of a custom resource: .*timeout/,
  ])
})

for (const { name, objects, surroundings, isPart } of BUILT) {
  if (isPart === true) continue
  void test(`${name}: the objects fit together`, async (t) => {
    t.same(findings(objects, surroundings), [])
    await validateConfigurations(t, name, objects)
  })
}

void test('with SQLite instead of PostgreSQL, one gateway has the volume', (t) => {
  const objects = objectsIn(built({ path: 'overlays/standalone', components: ['sqlite'] }))
  const faults = findings(objects, STANDALONE)
  // The configuration is the operator's part of the change.
  t.same(faults, ['a rolling update with PostgreSQL takes a ready pod away first'])
  const sqlite = configured(objects, (text) =>
    text.replace(/postgres:\/\/\S+/, 'sqlite:/data/ownership.db').replace(/ {2}postgres:\n.*\n/, ''),
  )
  t.same(findings(sqlite, STANDALONE), [])
  t.end()
})

void test('the drop-in changes one Service, and the way back restores it', (t) => {
  const [before, installed, switched, locked] = ['before', 'installed', 'switched', 'locked'].map((step) =>
    objectsOf(`drop-in, ${step}`),
  ) as [readonly KubernetesObject[], readonly KubernetesObject[], readonly KubernetesObject[], readonly KubernetesObject[]]
  const gateway = workloadsOf(installed)[0]!
  const service = one(before, 'Service', 'chat')
  const changed = one(switched, 'Service', 'chat')
  const selectorOf = ({ spec }: KubernetesObject): Labels => (spec as { selector: Labels }).selector

  t.notOk(
    installed.some(({ metadata }) => metadata.name === 'chat'),
    'installing changes nothing that callers use',
  )
  t.notOk(selects(selectorOf(service), gateway.labels), 'before the switch, no caller reaches the gateway')
  t.notOk(selects(selectorOf(changed), RUNTIME.labels), 'after it, none reaches the runtime')
  t.ok(selects(selectorOf(changed), gateway.labels))
  t.same(
    { ...changed, spec: { ...(changed.spec as object), selector: 0, ports: 0 } },
    { ...service, spec: { ...(service.spec as object), selector: 0, ports: 0 } },
    'the name, the type and the address of the Service stay',
  )
  const outside = ({ spec }: KubernetesObject): unknown =>
    (spec as { ports: { name: string; port: number }[] }).ports.map(({ name, port }) => ({ name, port }))
  t.same(outside(changed), outside(service), 'callers use the same port')
  t.notOk(selectorOf(one(installed, 'Service', 'chat-runtime-direct'))['app.kubernetes.io/name'] === 'threadwarden')

  const added = locked.filter(
    (object) => !switched.some(({ kind, metadata }) => kind === object.kind && metadata.name === object.metadata.name),
  )
  t.same(
    added.map(({ kind, metadata }) => `${kind} ${metadata.name}`),
    ['NetworkPolicy chat-runtime-from-threadwarden-only'],
  )
  t.same(
    locked.filter((object) => !added.includes(object)),
    switched,
    'the last step only adds the policy, so its removal is the first step back',
  )
  t.notOk(
    locked.some(({ kind, metadata }) => kind === 'Deployment' && metadata.name !== 'threadwarden'),
    "no step touches the runtime's Deployment",
  )
  t.end()
})

/** The how-tos on deployment: the manifest of Kubernetes is complete, and configurations and examples of proxies are valid. */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { parse, parseAllDocuments } from 'yaml'
import { makeFolder } from '../../testing/support/gateway.ts'
import { load } from '../../testing/support/configuration.ts'
import { blocksOf } from './commands.ts'
import { blocks, page } from './markdown.ts'

const KUBERNETES = page('docs/how-to/deploy/kubernetes.md')
const [MANIFEST = ''] = blocks(KUBERNETES, 'yaml kubernetes')

interface KubernetesObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace: string }
  readonly data: Readonly<Record<string, string>>
  readonly spec: Readonly<Record<string, unknown>>
}

const OBJECTS = parseAllDocuments(MANIFEST).map((document) => {
  if (document.errors.length > 0) throw document.errors[0]!
  return document.toJS() as KubernetesObject
})

const ofKind = (kind: string): KubernetesObject => OBJECTS.find((object) => object.kind === kind)!

interface Pod {
  readonly terminationGracePeriodSeconds: number
  readonly securityContext: object
  readonly containers: readonly [
    {
      readonly env: readonly { readonly name: string; readonly value: string }[]
      readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
      readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[]
    } & Readonly<Record<string, unknown>>,
  ]
  readonly volumes: readonly { readonly name: string }[]
}

const POD = (ofKind('Deployment').spec['template'] as { readonly spec: Pod }).spec
const [CONTAINER] = POD.containers

void test('every object has what kubectl asks of it', (t) => {
  t.same(
    OBJECTS.map(({ kind }) => kind),
    ['ConfigMap', 'Secret', 'PersistentVolumeClaim', 'Deployment', 'Service', 'NetworkPolicy'],
  )
  for (const { apiVersion, kind, metadata } of OBJECTS) {
    t.match(apiVersion, /^(?:v1|apps\/v1|networking\.k8s\.io\/v1)$/, kind)
    t.match(metadata.name, /^[a-z][a-z-]+$/, kind)
    t.equal(metadata.namespace, 'chat', kind)
  }
  t.end()
})

void test('kubectl reads it', { skip: spawnSync('kubectl', ['version', '--client']).error !== undefined }, (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  writeFileSync(join(folder, 'threadwarden.yaml'), MANIFEST)
  // Decodes each object by its kind, and asks no cluster.
  const args = ['label', '--local', '-f', 'threadwarden.yaml', '-o', 'name', 'tested=yes']
  const { status, stdout, stderr } = spawnSync('kubectl', args, { cwd: folder, env: { PATH: process.env['PATH'], HOME: folder } })
  t.equal(status, 0, String(stderr))
  t.equal(String(stdout).trim().split('\n').length, OBJECTS.length)
  t.end()
})

void test('its configuration is valid, and its parts fit together', (t) => {
  const text = ofKind('ConfigMap').data['threadwarden.yaml'] ?? ''
  const here = text.replace('/run/secrets/threadwarden/service-token', './token').replace('sqlite:/data/', 'sqlite:./data/')
  t.match(load(here, { files: { token: 'x' } }), { ok: true })
  const { listen, health } = parse(text) as Record<string, { port: number }>
  t.same(
    CONTAINER.ports.map(({ name, containerPort }) => [name, containerPort]),
    [
      ['http', listen?.port],
      ['health', health?.port],
    ],
  )
  t.same(POD.volumes.map(({ name }) => name).toSorted(), CONTAINER.volumeMounts.map(({ name }) => name).toSorted())
  t.same(CONTAINER.env, [{ name: 'TERMINATION_GRACE_PERIOD_SECONDS', value: String(POD.terminationGracePeriodSeconds) }])
  for (const [probe, path] of Object.entries({ startup: '/startupz', liveness: '/livez', readiness: '/readyz' })) {
    t.match(CONTAINER[`${probe}Probe`], { httpGet: { path, port: 'health' } }, probe)
  }
  t.match(POD.securityContext, { runAsNonRoot: true, runAsUser: 65532, fsGroup: 65532 })
  t.match(CONTAINER['securityContext'], { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false })
  t.match(ofKind('Deployment').spec, { replicas: 1, strategy: { type: 'Recreate' } })
  t.end()
})

void test('the part for more replicas changes keys that the manifest has', (t) => {
  const [part] = blocks(KUBERNETES, 'yaml kubernetes-part').map((text) => parse(text) as { spec: object })
  for (const key of Object.keys(part!.spec)) t.ok(key in ofKind('Deployment').spec, key)
  t.end()
})

void test('the proxy examples have balanced braces or are YAML, and forward to the default port', (t) => {
  const examples = blocksOf(page('docs/how-to/deploy/behind-a-proxy.md')).filter(({ info }) => info !== 'yaml')
  t.same(
    examples.map(({ info }) => info),
    ['nginx', 'haproxy', 'caddy', 'envoy'],
  )
  for (const { info, code } of examples) {
    if (info === 'envoy') t.ok(parse(code))
    else t.equal(code.split('{').length, code.split('}').length, info)
    t.match(code, info === 'envoy' ? /port_value: 8080/ : /127\.0\.0\.1:8080/, info)
  }
  t.end()
})

void test('the commands for containers name the paths of the image', (t) => {
  const dockerfile = page('Dockerfile').text
  t.match(dockerfile, 'ENTRYPOINT ["node", "/app/dist/cli.js"]')
  t.match(dockerfile, 'VOLUME ["/data"]')
  for (const { info, code } of blocksOf(page('docs/how-to/deploy/container.md'))) {
    if (info !== 'sh docker') continue
    for (const [config] of code.matchAll(/(?<=--config )\S+/g)) t.ok(dockerfile.includes(config), config)
  }
  t.end()
})

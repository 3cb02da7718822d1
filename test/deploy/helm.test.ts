/** deploy/helm/threadwarden: what Helm renders from a table of values is valid and fits together, and unsafe values are refused. */
import { createServer } from 'node:http'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'tap'
import { parse } from 'yaml'
import packageJson from '../../package.json' with { type: 'json' }
import { makeFolder } from '../../testing/support/gateway.ts'
import { page } from '../docs/markdown.ts'
import { ROOT } from '../suites/suites.ts'
import { CASES, merged, POSTGRES, REFUSALS, SIDECAR, STANDALONE } from './cases.ts'
import { validateConfigurations } from './configurations.ts'
import { findings } from './findings.ts'
import { objectsIn, workloadsOf, type KubernetesObject } from './objects.ts'
import { runTool, TOOLS, type Ran, type Tools } from './tools.ts'
import { typeErrors } from './types.ts'

const CHART = join(ROOT, 'deploy/helm/threadwarden')

function helm(tools: Tools, command: readonly string[], values: unknown): Ran {
  const { folder, remove } = makeFolder()
  try {
    // JSON is YAML.
    writeFileSync(join(folder, 'values.yaml'), JSON.stringify(values))
    return runTool(tools.helm, [...command, '--values', join(folder, 'values.yaml')], folder)
  } finally {
    remove()
  }
}

function rendered(tools: Tools, values: unknown): readonly KubernetesObject[] {
  const { code, stdout, stderr } = helm(tools, ['template', 'chat', CHART, '--namespace', 'chat'], values)
  if (code !== 0) throw new Error(stderr)
  return objectsIn(stdout).map((object) => ({ ...object, metadata: { ...object.metadata, namespace: 'chat' } }))
}

const [NEWEST] = TOOLS as [Tools]
const RENDERED = CASES.map((one) => ({ ...one, objects: rendered(NEWEST, one.values) }))

for (const tools of TOOLS) {
  void test(`Helm ${tools.name}: lint finds nothing`, (t) => {
    for (const values of [STANDALONE, POSTGRES, SIDECAR]) {
      const { code, stdout, stderr } = helm(tools, ['lint', '--strict', CHART], values)
      t.equal(code, 0, stdout + stderr)
    }
    t.end()
  })
}

void test('both versions of Helm render the same', (t) => {
  for (const { name, values, objects } of RENDERED) {
    for (const other of TOOLS.slice(1)) t.same(rendered(other, values), objects, name)
  }
  t.end()
})

void test('every object has the types of Kubernetes and no unknown key', async (t) => {
  t.same(await typeErrors(RENDERED.flatMap(({ name, objects }) => objects.map((object) => ({ from: name, object })))), [])
})

for (const { name, objects, surroundings, kinds, warning } of RENDERED) {
  void test(`${name}: the objects fit together`, async (t) => {
    t.same(findings(objects, surroundings), [])
    const counted = Object.fromEntries(
      Object.keys(kinds).map((kind) => [kind, objects.filter((object) => object.kind === kind).length]),
    )
    t.same(counted, kinds)
    t.equal(
      objects.length,
      Object.values(kinds).reduce((sum, count) => sum + count, 0),
      'no other kind',
    )
    await validateConfigurations(t, name, objects, warning)
  })
}

for (const { name, values, message } of REFUSALS) {
  void test(`refused: ${name}`, (t) => {
    for (const tools of TOOLS) {
      const { code, stderr } = helm(tools, ['template', 'chat', CHART, '--namespace', 'chat'], values)
      t.equal(code, 1, tools.name)
      t.match(stderr.replaceAll(/\s+/g, ' '), message, tools.name)
    }
    t.end()
  })
}

const SERVICE = '/api/v1/namespaces/chat/services/chat-runtime'

void test('a runtime Service of the cluster that is public is refused at the installation', async (t) => {
  const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'chat-runtime', namespace: 'chat' } }
  let type = 'LoadBalancer'
  const requests: string[] = []
  const answers: Readonly<Record<string, () => unknown>> = {
    '/version': () => ({ major: '1', minor: '35', gitVersion: 'v1.35.0' }),
    '/api': () => ({ kind: 'APIVersions', versions: ['v1'] }),
    '/apis': () => ({ kind: 'APIGroupList', apiVersion: 'v1', groups: [] }),
    '/api/v1': () => ({
      kind: 'APIResourceList',
      groupVersion: 'v1',
      resources: [{ name: 'services', singularName: 'service', namespaced: true, kind: 'Service', verbs: ['get', 'list'] }],
    }),
    [SERVICE]: () => ({ ...service, spec: { type } }),
  }
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://x')
    requests.push(pathname)
    const answer = answers[pathname]
    response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/json' })
    response.end(
      JSON.stringify(answer?.() ?? { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 }),
    )
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { folder, remove } = makeFolder()
  t.teardown(() => {
    server.close()
    remove()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  writeFileSync(join(folder, 'values.yaml'), JSON.stringify(POSTGRES))
  const install = async (): Promise<{ code: number | null; output: string }> => {
    const args = ['template', 'chat', CHART, '--namespace', 'chat', '--dry-run=server', '--kube-apiserver', url]
    const child = spawn(NEWEST.helm, [...args, '--values', join(folder, 'values.yaml')], {
      cwd: folder,
      env: { PATH: process.env['PATH'], HOME: folder },
    })
    const closed = once(child, 'close') as Promise<[number | null]>
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), closed])
    return { code, output: stdout + stderr }
  }
  t.match(await install(), {
    code: 1,
    output: /The Service chat-runtime of the runtime is a LoadBalancer.*Change its type to ClusterIP/,
  })
  type = 'ClusterIP'
  const asked = requests.length
  t.notMatch((await install()).output, /bypass the gateway/)
  t.ok(requests.slice(asked).includes(SERVICE), 'Helm has read the Service again')
})

const deploymentOf = (values: unknown): KubernetesObject => rendered(NEWEST, values).find(({ kind }) => kind === 'Deployment')!

function restartKeys(values: unknown): string | undefined {
  const { spec } = deploymentOf(values) as { spec: { template: { metadata: { annotations: Record<string, string> } } } }
  return spec.template.metadata.annotations['threadwarden/restart-keys']
}

void test('only a change that a running gateway cannot apply restarts the pods', (t) => {
  const before = restartKeys(POSTGRES)
  const reloaded = [
    { config: { upstream: { url: 'http://other:4000' } } },
    { config: { limits: { runs: '10/m' } } },
    { config: { log: { level: 'debug' } } },
    { files: { 'policy.yaml': 'x' } },
  ]
  for (const change of reloaded) t.equal(restartKeys(merged(POSTGRES, change)), before, JSON.stringify(change))
  const restarting: Readonly<Record<string, unknown>> = {
    'listen.host': { config: { listen: { host: '::' } } },
    'listen.port': { config: { listen: { port: 9000 } } },
    'listen.fd': { config: { listen: { fd: 3 } } },
    'listen.connections': { config: { listen: { connections: 1000 } } },
    'listen.trustedProxies': { config: { listen: { trustedProxies: ['10.0.0.0/8'] } } },
    'health.host': { config: { health: { host: '::' } } },
    'health.port': { config: { health: { port: 9001 } } },
    admin: { config: { admin: { credentialFile: '/etc/threadwarden/secrets/admin' } } },
    'admin.host': { config: { admin: { host: '::1' } } },
    'admin.port': { config: { admin: { port: 9091 } } },
    'ownership.store': { config: { ownership: { store: 'postgres://threadwarden@other/threadwarden' } } },
    'ownership.postgres': { config: { ownership: { postgres: { pool: 20 } } } },
    'limits.headers': { config: { limits: { headers: '32KiB' } } },
    'limits.bodiesInFlight': { config: { limits: { bodiesInFlight: '64MiB' } } },
    audit: { config: { audit: { to: 'stdout' } } },
    workers: { config: { workers: 2 } },
  }
  const tls = merged(POSTGRES, { tls: { secretName: 'gateway-tls' } })
  const withTls = restartKeys(tls)
  t.not(withTls, before, 'tls.secretName')
  const inTls = (change: object): string | undefined => restartKeys(merged(tls, { config: { listen: { tls: change } } }))
  t.equal(inTls({ minVersion: 'TLSv1.3' }), withTls, 'listen.tls.minVersion')
  t.not(inTls({ clientCertificates: { ca: '/etc/threadwarden/clients.crt' } }), withTls, 'listen.tls.clientCertificates')
  const [, list = ''] = page('docs/how-to/operate/reload.md').text.split('cannot be changed at runtime.')
  const listed = [...list.split('\n\n')[1]!.matchAll(/`([\w.]+)`/g)].map(([, key]) => key)
  t.same(Object.keys(restarting).toSorted(), listed.toSorted(), 'docs/how-to/operate/reload.md has the same keys')
  // Each change is one of a key that is there already.
  const admin = { config: { admin: { host: '127.0.0.1', port: 9090 } } }
  for (const [key, change] of Object.entries(restarting)) {
    const base = key.startsWith('admin.') ? merged(POSTGRES, admin) : POSTGRES
    t.not(restartKeys(merged(base, change as Record<string, unknown>)), restartKeys(base), key)
  }
  t.end()
})

void test('the Ingress has a path for each public path, and time and room for streams', (t) => {
  const { objects } = RENDERED.find(({ name }) => name.startsWith('several upstreams'))!
  const ingress = objects.find(({ kind }) => kind === 'Ingress')!
  const { rules } = ingress.spec as { rules: { http: { paths: { path: string }[] } }[] }
  t.same(
    rules[0]!.http.paths.map(({ path }) => path),
    ['/agents/research', '/api/copilotkit', '/legal/copilotkit'],
  )
  t.match(ingress.metadata.annotations, {
    'nginx.ingress.kubernetes.io/proxy-buffering': 'off',
    'nginx.ingress.kubernetes.io/proxy-read-timeout': '120',
    'nginx.ingress.kubernetes.io/proxy-body-size': '16m',
    'nginx.ingress.kubernetes.io/proxy-next-upstream': 'off',
  })
  t.end()
})

void test('a Gateway verifies the name of the Service, or the one of the values', (t) => {
  const names = RENDERED.flatMap(({ objects }) => objects)
    .filter(({ kind }) => kind === 'BackendTLSPolicy')
    .map(({ spec }) => (spec as { validation: { hostname: string } }).validation.hostname)
  t.same(names, ['chat-threadwarden.chat.svc', 'chat.example.com'])
  t.end()
})

void test('a hook of the values replaces the default one, and other settings of the container are merged', (t) => {
  const { pod } = workloadsOf(rendered(NEWEST, CASES.find(({ name }) => name.startsWith('sidecar with a hook'))!.values))[0]!
  t.same(pod.containers[0]?.lifecycle, { preStop: { sleep: { seconds: 105 } } })
  t.match(pod.containers[0]?.securityContext, { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } })
  t.equal(pod.initContainers?.[0]?.env?.[0]?.value, '105')
  t.end()
})

void test('the notes warn where threads are not protected', (t) => {
  const notes = (values: unknown): string => {
    const { folder, remove } = makeFolder()
    try {
      writeFileSync(join(folder, 'values.yaml'), JSON.stringify(values))
      const args = ['install', 'chat', CHART, '--dry-run=client', '--namespace', 'chat', '--values', join(folder, 'values.yaml')]
      const { code, stdout, stderr } = runTool(NEWEST.helm, args, folder)
      t.equal(code, 0, stderr)
      return stdout.split('NOTES:')[1] ?? ''
    } finally {
      remove()
    }
  }
  t.notMatch(notes(POSTGRES), /WARNING/)
  t.match(notes(STANDALONE), /volume chat-threadwarden\. Back it up/)
  t.match(notes(merged(POSTGRES, { config: { enforcement: 'observe' } })), /WARNING: enforcement is observe/)
  t.match(notes(merged(POSTGRES, { config: { authentication: { mode: 'off' } } })), /WARNING: authentication is off/)
  t.match(notes(merged(POSTGRES, { networkPolicy: { enabled: false } })), /WARNING: networkPolicy\.enabled is false/)
  t.match(notes(merged(POSTGRES, { runtime: { selector: null } })), /WARNING: runtime\.selector is empty/)
  const agents = { research: { url: 'http://research:5000' } }
  const upstreams = { legal: { url: 'http://legal:4000', basePath: '/api/copilotkit', publicPath: '/legal' } }
  t.match(
    notes(merged(POSTGRES, { config: { agents, upstreams } })),
    /WARNING: the chart protects one upstream, the pods of runtime\.selector\.[^]*: upstreams\.legal, agents\.research\n/,
  )
  t.notMatch(notes(merged(POSTGRES, { config: { upstream: null, agents } })), /WARNING/, 'runtime.selector is for the only one')
  t.match(
    notes(merged(POSTGRES, { config: { upstream: null, agents, upstreams } })),
    /: upstreams\.legal, agents\.research\n/,
    'the chart cannot know which one runtime.selector is for',
  )
  t.match(
    notes(merged(SIDECAR, { config: { agents: { ...agents, local: { url: 'http://127.0.0.1:5000' } } } })),
    /WARNING: the chart protects one upstream, that in the pod\.[^]*: agents\.research\n/,
  )
  const route = { httpRoute: { enabled: true, parentRefs: [{ name: 'chat' }] } }
  const tls = { tls: { secretName: 'gateway-tls' } }
  t.match(notes(merged(POSTGRES, { ...route, ...tls })), /WARNING: httpRoute\.backendCa\.configMap is empty/)
  t.notMatch(notes(merged(merged(POSTGRES, { ...route, ...tls }), { httpRoute: { backendCa: { configMap: 'ca' } } })), /WARNING/)
  t.match(notes(merged(POSTGRES, tls)), /port 80, with https\./)
  t.match(notes(merged(POSTGRES, route)), /Set config\.listen\.trustedProxies/)
  t.match(notes(merged(POSTGRES, { ingress: { enabled: true } })), /Set config\.listen\.trustedProxies/)
  const trusting = { config: { listen: { trustedProxies: ['10.0.3.0/28'] } } }
  t.notMatch(notes(merged(POSTGRES, { ...route, ...trusting })), /trustedProxies/)
  t.end()
})

void test('the versions of the chart are that of the package', (t) => {
  const { version, appVersion } = parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8')) as Record<string, string>
  t.same({ version, appVersion }, { version: packageJson.version, appVersion: packageJson.version })
  t.end()
})

void test('the documentation names what the tests use', (t) => {
  const text = page('docs/how-to/deploy/kubernetes.md').text
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const minor = (program: string, args: readonly string[]): string =>
    /v(\d+\.\d+)\./.exec(runTool(program, args, folder).stdout)?.[1] ?? 'unknown'
  const [newest, oldest] = TOOLS.map((tools) => ({
    kubectl: minor(tools.kubectl, ['version', '--client']),
    helm: minor(tools.helm, ['version']),
  })) as [Record<'kubectl' | 'helm', string>, Record<'kubectl' | 'helm', string>]
  t.match(text, `kubectl ${oldest.kubectl} and ${newest.kubectl} build every overlay`)
  t.match(text, `Helm ${oldest.helm} and ${newest.helm} render the chart with ${CASES.length} combinations of values`)
  t.match(page('docs/how-to/deploy/helm.md').text, `Helm ${oldest.helm} and ${newest.helm}`)
  t.end()
})

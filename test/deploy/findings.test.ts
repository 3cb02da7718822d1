/** Each rule of findings.ts notices a manifest that breaks it, and nothing else. */
import { test } from 'tap'
import { BUILT } from './builds.ts'
import { findings } from './findings.ts'
import type { KubernetesObject } from './objects.ts'

interface Change {
  readonly build: string
  /** The object, and the path of the key in it. */
  readonly at: readonly [object: string, path: string]
  /** `undefined` removes the key. */
  readonly to: unknown
  readonly finding: RegExp
}

const SIDECAR = 'sidecar'
const EVERYTHING = 'standalone with everything and an Ingress'
const ROUTE = 'standalone with the Gateway API'
const TLS = 'standalone with TLS and an Ingress'
const TLS_ROUTE = 'standalone with TLS and the Gateway API'
const LOCKED = 'drop-in, locked'
const POD = 'spec.template.spec'
const GATEWAY = `${POD}.containers.0`

const CHANGES: readonly Change[] = [
  { build: EVERYTHING, at: ['Service threadwarden', 'metadata.name'], to: 'Threadwarden', finding: /is not a DNS label/ },
  { build: EVERYTHING, at: ['Service threadwarden-metrics', 'metadata.name'], to: 'threadwarden', finding: /is there twice/ },
  { build: EVERYTHING, at: ['Service threadwarden', 'metadata.namespace'], to: 'other', finding: /several namespaces/ },
  {
    build: EVERYTHING,
    at: ['Deployment threadwarden', 'spec.selector.matchLabels'],
    to: { a: 'b' },
    finding: /does not select its pods/,
  },
  { build: EVERYTHING, at: ['Deployment threadwarden', `${POD}.volumes.0.configMap.name`], to: 'x', finding: /no ConfigMap x/ },
  { build: EVERYTHING, at: ['Deployment threadwarden', `${POD}.volumes.1.secret.secretName`], to: 'x', finding: /no Secret x/ },
  {
    build: SIDECAR,
    at: ['Deployment chat-runtime', `${POD}.volumes.0.persistentVolumeClaim.claimName`],
    to: 'x',
    finding: /no claim x/,
  },
  {
    build: EVERYTHING,
    at: ['Deployment threadwarden', `${POD}.volumes.2`],
    to: { name: 'x', emptyDir: {} },
    finding: /volume x is not mounted/,
  },
  { build: EVERYTHING, at: ['Deployment threadwarden', `${GATEWAY}.volumeMounts.1.name`], to: 'x', finding: /no volume x/ },
  { build: EVERYTHING, at: ['Deployment threadwarden', `${GATEWAY}.volumeMounts.0.subPath`], to: 'x', finding: /with subPath/ },
  {
    build: EVERYTHING,
    at: ['Deployment threadwarden', `${POD}.securityContext.runAsNonRoot`],
    to: undefined,
    finding: /runAsNonRoot/,
  },
  {
    build: SIDECAR,
    at: ['Deployment chat-runtime', `${POD}.securityContext.runAsUser`],
    to: 0,
    finding: /runtime: runAsUser is 0/,
  },
  {
    build: SIDECAR,
    at: ['Deployment chat-runtime', `${GATEWAY}.securityContext.allowPrivilegeEscalation`],
    to: true,
    finding: /runtime: allowPrivilegeEscalation/,
  },
  {
    build: EVERYTHING,
    at: ['Deployment threadwarden', `${GATEWAY}.securityContext.privileged`],
    to: true,
    finding: /privileged/,
  },
  {
    build: EVERYTHING,
    at: ['Deployment threadwarden', `${GATEWAY}.securityContext.capabilities.drop`],
    to: ['NET_RAW'],
    finding: /keeps capabilities/,
  },
  {
    build: EVERYTHING,
    at: ['Deployment threadwarden', `${GATEWAY}.securityContext.capabilities.add`],
    to: ['SYS_ADMIN'],
    finding: /adds capabilities/,
  },
  {
    build: EVERYTHING,
    at: ['Deployment threadwarden', `${POD}.securityContext.seccompProfile`],
    to: undefined,
    finding: /no seccomp profile/,
  },
  { build: EVERYTHING, at: ['Deployment threadwarden', `${GATEWAY}.ports.0.hostPort`], to: 8080, finding: /host port/ },
  { build: EVERYTHING, at: ['Deployment threadwarden', `${POD}.hostNetwork`], to: true, finding: /namespaces of the host/ },
  {
    build: EVERYTHING,
    at: ['Deployment threadwarden', `${POD}.volumes.1.hostPath`],
    to: { path: '/' },
    finding: /is a hostPath/,
  },
  {
    build: EVERYTHING,
    at: ['Deployment threadwarden', `${GATEWAY}.image`],
    to: 'ghcr.io/threadwarden/threadwarden:0.0.9',
    finding: /is not of version/,
  },
  {
    build: EVERYTHING,
    at: ['Deployment threadwarden', `${GATEWAY}.ports.0.name`],
    to: 'http',
    finding: /port gateway is not listen\.port/,
  },
  {
    build: SIDECAR,
    at: ['Deployment chat-runtime', `${POD}.initContainers.0.ports.1.name`],
    to: 'metrics',
    finding: /port health is not health\.port/,
  },
  {
    build: SIDECAR,
    at: ['Deployment chat-runtime', `${POD}.initContainers.0.startupProbe.httpGet.path`],
    to: '/readyz',
    finding: /startupProbe does not ask \/startupz/,
  },
  {
    build: EVERYTHING,
    at: ['Deployment threadwarden', `${GATEWAY}.livenessProbe.httpGet.path`],
    to: '/readyz',
    finding: /livenessProbe does not ask \/livez/,
  },
  { build: EVERYTHING, at: ['Deployment threadwarden', `${GATEWAY}.readinessProbe`], to: undefined, finding: /readinessProbe/ },
  {
    build: EVERYTHING,
    at: ['Deployment threadwarden', `${GATEWAY}.securityContext.readOnlyRootFilesystem`],
    to: undefined,
    finding: /not read-only/,
  },
  {
    build: EVERYTHING,
    at: ['Deployment threadwarden', `${POD}.securityContext.runAsUser`],
    to: 1000,
    finding: /user is not 65532/,
  },
  { build: EVERYTHING, at: ['Deployment threadwarden', `${POD}.securityContext.fsGroup`], to: undefined, finding: /fsGroup/ },
  {
    build: EVERYTHING,
    at: ['Deployment threadwarden', `${POD}.automountServiceAccountToken`],
    to: undefined,
    finding: /token for the Kubernetes API/,
  },
  {
    build: EVERYTHING,
    at: ['Deployment threadwarden', `${GATEWAY}.resources.limits.memory`],
    to: undefined,
    finding: /memory limit/,
  },
  { build: EVERYTHING, at: ['Deployment threadwarden', `${GATEWAY}.resources.limits.cpu`], to: '1', finding: /CPU limit/ },
  {
    build: EVERYTHING,
    at: ['Deployment threadwarden', `${GATEWAY}.resources.requests.cpu`],
    to: undefined,
    finding: /CPU request/,
  },
  {
    build: EVERYTHING,
    at: ['Deployment threadwarden', `${GATEWAY}.volumeMounts.0.readOnly`],
    to: undefined,
    finding: /\/etc\/threadwarden is writable/,
  },
  {
    build: EVERYTHING,
    at: ['Deployment threadwarden', `${GATEWAY}.env.0.value`],
    to: '10',
    finding: /not longer than its drain/,
  },
  {
    build: EVERYTHING,
    at: ['Deployment threadwarden', `${POD}.terminationGracePeriodSeconds`],
    to: 30,
    finding: /killed before/,
  },
  {
    build: EVERYTHING,
    at: ['Deployment threadwarden', `${POD}.terminationGracePeriodSeconds`],
    to: 90,
    finding: /whole grace period/,
  },
  { build: SIDECAR, at: ['Deployment chat-runtime', `${POD}.terminationGracePeriodSeconds`], to: 59, finding: /killed before/ },
  {
    build: SIDECAR,
    at: ['Deployment chat-runtime', `${POD}.initContainers.0.lifecycle`],
    to: undefined,
    finding: /drains only after the runtime/,
  },
  {
    build: SIDECAR,
    at: ['Deployment chat-runtime', `${GATEWAY}.lifecycle`],
    to: undefined,
    finding: /runtime stops before the gateway/,
  },
  {
    build: EVERYTHING,
    at: ['Deployment threadwarden', `${GATEWAY}.lifecycle`],
    to: { preStop: { exec: { command: ['x'] } } },
    finding: /takes time from the drain/,
  },
  {
    build: EVERYTHING,
    at: ['Deployment threadwarden', 'spec.strategy.rollingUpdate.maxUnavailable'],
    to: 1,
    finding: /takes a ready pod away first/,
  },
  { build: SIDECAR, at: ['Deployment chat-runtime', 'spec.replicas'], to: 2, finding: /share a SQLite file/ },
  {
    build: SIDECAR,
    at: ['Deployment chat-runtime', 'spec.strategy'],
    to: undefined,
    finding: /open a SQLite file during an update/,
  },
  {
    build: SIDECAR,
    at: ['ConfigMap threadwarden', 'data.threadwarden%2Eyaml'],
    to: /sqlite:\/data\/=sqlite:\/tmp\//,
    finding: /not in \/data/,
  },
  {
    build: SIDECAR,
    at: ['Deployment chat-runtime', `${POD}.volumes.0`],
    to: { name: 'threadwarden-data', emptyDir: {} },
    finding: /outlives the pod/,
  },
  {
    build: SIDECAR,
    at: ['PersistentVolumeClaim threadwarden', 'spec.accessModes'],
    to: ['ReadWriteMany'],
    finding: /may write to the volume/,
  },
  {
    build: EVERYTHING,
    at: ['ConfigMap threadwarden', 'data.threadwarden%2Eyaml'],
    to: /service-token}=other-token}/,
    finding: /no file .*other-token/,
  },
  {
    build: SIDECAR,
    at: ['ConfigMap threadwarden', 'data.threadwarden%2Eyaml'],
    to: /127\.0\.0\.1:4000=chat-runtime:4000/,
    finding: /not on loopback/,
  },
  {
    build: EVERYTHING,
    at: ['ConfigMap threadwarden', 'data.threadwarden%2Eyaml'],
    to: /chat-runtime:4000=other:4000/,
    finding: /no Service other/,
  },
  { build: EVERYTHING, at: ['ConfigMap threadwarden', 'data'], to: { 'other.yaml': '' }, finding: /has no threadwarden\.yaml/ },
  {
    build: SIDECAR,
    at: ['Deployment chat-runtime', `${POD}.initContainers.0.restartPolicy`],
    to: undefined,
    finding: /not a sidecar/,
  },
  {
    build: SIDECAR,
    at: ['Deployment chat-runtime', `${POD}.shareProcessNamespace`],
    to: true,
    finding: /process 1 is not the gateway/,
  },
  {
    build: SIDECAR,
    at: ['Deployment chat-runtime', `${GATEWAY}.ports`],
    to: [{ containerPort: 4000 }],
    finding: /publishes a port/,
  },
  {
    build: EVERYTHING,
    at: ['Service threadwarden', 'spec.selector'],
    to: { a: 'b' },
    finding: /Service threadwarden selects no pods/,
  },
  { build: EVERYTHING, at: ['Service threadwarden', 'spec.ports.0.targetPort'], to: 4000, finding: /leads to no port/ },
  { build: SIDECAR, at: ['Service threadwarden', 'spec.ports.0.targetPort'], to: 4000, finding: /leads to no port/ },
  { build: LOCKED, at: ['Service chat-runtime-direct', 'spec.type'], to: 'LoadBalancer', finding: /publishes the runtime/ },
  {
    build: EVERYTHING,
    at: ['Service threadwarden-metrics', 'spec.type'],
    to: 'NodePort',
    finding: /publishes the runtime or the health/,
  },
  {
    build: EVERYTHING,
    at: ['Service threadwarden', 'spec.ports.1'],
    to: { port: 8081, targetPort: 8081 },
    finding: /health port to callers/,
  },
  {
    build: EVERYTHING,
    at: ['PodDisruptionBudget threadwarden', 'spec.selector.matchLabels'],
    to: { a: 'b' },
    finding: /PodDisruptionBudget threadwarden selects no pods/,
  },
  {
    build: EVERYTHING,
    at: ['HorizontalPodAutoscaler threadwarden', 'spec.scaleTargetRef.name'],
    to: 'x',
    finding: /scales nothing/,
  },
  { build: EVERYTHING, at: ['Deployment threadwarden', 'spec.replicas'], to: 2, finding: /resets the number/ },
  {
    build: EVERYTHING,
    at: ['HorizontalPodAutoscaler threadwarden', 'spec.metrics.0.pods.metric.name'],
    to: 'streams',
    finding: /no metric streams/,
  },
  { build: EVERYTHING, at: ['NetworkPolicy threadwarden', 'spec.ingress.0.ports.0.port'], to: 4000, finding: /admits port 4000/ },
  { build: SIDECAR, at: ['NetworkPolicy threadwarden', 'spec.ingress.0.ports'], to: undefined, finding: /admits port 0/ },
  {
    build: EVERYTHING,
    at: ['NetworkPolicy threadwarden', 'spec.ingress.1.from'],
    to: undefined,
    finding: /all to the health port/,
  },
  { build: EVERYTHING, at: ['NetworkPolicy threadwarden', 'spec.policyTypes'], to: ['Egress'], finding: /not about incoming/ },
  {
    build: LOCKED,
    at: ['NetworkPolicy chat-runtime-from-threadwarden-only', 'spec.ingress.0.from'],
    to: undefined,
    finding: /admits others/,
  },
  {
    build: LOCKED,
    at: ['NetworkPolicy chat-runtime-from-threadwarden-only', 'spec.ingress.0.from.1'],
    to: { namespaceSelector: {} },
    finding: /admits others/,
  },
  {
    build: LOCKED,
    at: ['NetworkPolicy chat-runtime-from-threadwarden-only', 'spec.ingress.0.from.0.podSelector'],
    to: {},
    finding: /admits others/,
  },
  {
    build: LOCKED,
    at: ['NetworkPolicy chat-runtime-from-threadwarden-only', 'spec.podSelector.matchLabels'],
    to: { a: 'b' },
    finding: /without the gateway/,
  },
  {
    build: EVERYTHING,
    at: ['NetworkPolicy threadwarden', 'spec.podSelector.matchLabels'],
    to: { a: 'b' },
    finding: /no NetworkPolicy for threadwarden/,
  },
  {
    build: EVERYTHING,
    at: ['ServiceMonitor threadwarden', 'spec.selector.matchLabels'],
    to: { a: 'b' },
    finding: /watches 0 Services/,
  },
  { build: EVERYTHING, at: ['ServiceMonitor threadwarden', 'spec.endpoints.0.port'], to: 'metrics', finding: /no port metrics/ },
  { build: EVERYTHING, at: ['ServiceMonitor threadwarden', 'spec.endpoints.0.path'], to: '/', finding: /does not ask \/metrics/ },
  { build: EVERYTHING, at: ['ServiceMonitor threadwarden', 'spec.jobLabel'], to: undefined, finding: /job is not threadwarden/ },
  {
    build: EVERYTHING,
    at: ['Ingress threadwarden', 'spec.rules.0.http.paths.0.backend.service.name'],
    to: 'threadwarden-metrics',
    finding: /Ingress leads to no port/,
  },
  { build: EVERYTHING, at: ['Ingress threadwarden', 'spec.tls'], to: undefined, finding: /has no TLS/ },
  { build: EVERYTHING, at: ['Certificate chat-tls', 'spec.secretName'], to: 'x', finding: /certificate in x is not used/ },
  {
    build: ROUTE,
    at: ['HTTPRoute threadwarden', 'spec.rules.0.backendRefs.0.port'],
    to: 8080,
    finding: /HTTPRoute leads to no port/,
  },
  { build: ROUTE, at: ['HTTPRoute threadwarden', 'spec.rules.0.timeouts'], to: undefined, finding: /cuts streams/ },
  { build: ROUTE, at: ['HTTPRoute threadwarden', 'spec.parentRefs.0.name'], to: 'x', finding: /no Gateway x/ },
  { build: ROUTE, at: ['Certificate chat-tls', 'spec.secretName'], to: 'x', finding: /certificate in x is not used/ },
  {
    build: TLS,
    at: ['ConfigMap threadwarden', 'data.threadwarden%2Eyaml'],
    to: / {2}tls:.*\n=/,
    finding: /has a certificate, but no listen\.tls/,
  },
  {
    build: TLS,
    at: ['ConfigMap threadwarden', 'data.threadwarden%2Eyaml'],
    to: /tls\/tls\.key=tls\/key.pem/,
    finding: /no file .*tls\/key\.pem/,
  },
  {
    build: TLS,
    at: ['ConfigMap threadwarden', 'data.threadwarden%2Eyaml'],
    to: /tls\.key }=tls.key, clientCertificates: { ca: \/etc\/ca.crt } }/,
    finding: /no file \/etc\/ca\.crt/,
  },
  { build: TLS, at: ['Certificate threadwarden-tls', 'spec.secretName'], to: 'x', finding: /no Secret threadwarden-tls/ },
  {
    build: TLS,
    at: ['Certificate threadwarden-tls', 'spec.dnsNames'],
    to: ['threadwarden.other.svc'],
    finding: /not for the Service threadwarden/,
  },
  {
    build: TLS,
    at: ['Service threadwarden', 'spec.ports.0.appProtocol'],
    to: 'http',
    finding: /not named and marked as https/,
  },
  { build: TLS, at: ['Service threadwarden', 'spec.ports.0.name'], to: 'http', finding: /not named and marked as https/ },
  {
    build: EVERYTHING,
    at: ['Service threadwarden', 'spec.ports.0.appProtocol'],
    to: 'https',
    finding: /not named and marked as http$/,
  },
  {
    build: TLS,
    at: ['Ingress threadwarden', 'metadata.annotations.nginx%2Eingress%2Ekubernetes%2Eio/backend-protocol'],
    to: undefined,
    finding: /does not speak https/,
  },
  {
    build: EVERYTHING,
    at: ['Ingress threadwarden', 'metadata.annotations.nginx%2Eingress%2Ekubernetes%2Eio/backend-protocol'],
    to: 'HTTPS',
    finding: /does not speak http to/,
  },
  {
    build: TLS_ROUTE,
    at: ['ConfigMap threadwarden', 'data.threadwarden%2Eyaml'],
    to: / {2}tls:.*\n=/,
    finding: /speaks TLS to a gateway without it/,
  },
  { build: TLS_ROUTE, at: ['BackendTLSPolicy threadwarden', 'kind'], to: 'X', finding: /plain HTTP to a gateway with TLS/ },
  {
    build: TLS_ROUTE,
    at: ['BackendTLSPolicy threadwarden', 'spec.targetRefs.0.name'],
    to: 'threadwarden-metrics',
    finding: /about no Service of the gateway/,
  },
  {
    build: TLS_ROUTE,
    at: ['BackendTLSPolicy threadwarden', 'spec.validation.hostname'],
    to: 'chat.example.com',
    finding: /not for chat\.example\.com/,
  },
  {
    build: TLS_ROUTE,
    at: ['BackendTLSPolicy threadwarden', 'spec.validation.caCertificateRefs.0.name'],
    to: 'x',
    finding: /no ConfigMap x with a ca\.crt/,
  },
]

/** A copy of the objects with one key changed. A pattern `from=to` replaces a part of a text. */
function changed(objects: readonly KubernetesObject[], { at: [name, path], to }: Change): readonly KubernetesObject[] {
  const copy = structuredClone(objects) as KubernetesObject[]
  const object = copy.find(({ kind, metadata }) => `${kind} ${metadata.name}` === name)
  const keys = path.split('.').map((key) => key.replaceAll('%2E', '.'))
  const last = keys.pop()!
  // The tree of an object has no type of its own.
  const parent = keys.reduce<Record<string, unknown>>(
    (inner, key) => inner[key] as Record<string, unknown>,
    object as unknown as Record<string, unknown>,
  )
  if (to === undefined) Reflect.deleteProperty(parent, last)
  else if (to instanceof RegExp) {
    const [from = '', into = ''] = to.source.split('=')
    const before = String(parent[last])
    parent[last] = before.replace(new RegExp(from), into.replaceAll('\\', ''))
    if (parent[last] === before) throw new Error(`${from} is not in ${path}`)
  } else parent[last] = to
  return copy
}

for (const change of CHANGES) {
  const { build, at, to, finding } = change
  void test(`${build}: ${at.join(' ')} = ${to instanceof RegExp ? to.source : JSON.stringify(to)}`, (t) => {
    const { objects, surroundings } = BUILT.find(({ name }) => name === build)!
    const found = findings(changed(objects, change), surroundings)
    t.ok(
      found.some((one) => finding.test(one)),
      `${finding.source} is found: ${found.join('; ')}`,
    )
    t.end()
  })
}

/** Values of the Helm chart: what operators combine, and what the chart refuses. */
import { readFileSync } from 'node:fs'
import { AUTHORITY } from '../../testing/support/certificates.ts'
import { ROOT } from '../suites/suites.ts'
import type { Surroundings } from './findings.ts'

type Values = Readonly<Record<string, unknown>>

const AUTHENTICATION = {
  issuers: { corp: { issuer: 'https://login.example.com/', audiences: ['agent-chat'], algorithms: ['RS256'] } },
}
const TOKEN = { 'x-service-token': '${file:/etc/threadwarden/secrets/service-token}' }
const UPSTREAM = { url: 'http://chat-runtime:4000', basePath: '/api/copilotkit', headers: TOKEN }
const SQLITE = { unknownThread: 'claim' }
const POSTGRESQL = {
  store: 'postgres://threadwarden@postgres/threadwarden',
  postgres: { password: '${file:/etc/threadwarden/secrets/database-password}' },
  unknownThread: 'claim',
}
const CONTAINER = {
  image: 'registry.example.com/chat-runtime:1.0.0',
  env: [{ name: 'HOST', value: '127.0.0.1' }],
  resources: { requests: { cpu: '100m', memory: '256Mi' }, limits: { memory: '512Mi' } },
}

export const STANDALONE: Values = {
  existingSecret: 'chat-secrets',
  config: { upstream: UPSTREAM, authentication: AUTHENTICATION, ownership: SQLITE },
  runtime: { selector: { app: 'chat-runtime' } },
}
export const POSTGRES: Values = {
  ...STANDALONE,
  replicas: 2,
  config: { ...(STANDALONE['config'] as Values), ownership: POSTGRESQL },
}
export const SIDECAR: Values = {
  topology: 'sidecar',
  config: { upstream: { basePath: '/api/copilotkit' }, authentication: AUTHENTICATION, ownership: SQLITE },
  runtime: { container: CONTAINER },
}

const AROUND: Surroundings = {
  secrets: { 'chat-secrets': ['service-token', 'database-password'] },
  services: ['chat-runtime', 'legal', 'research'],
  pods: [{ labels: { app: 'chat-runtime' }, ports: [4000] }],
  gateways: ['chat'],
}

export interface Case {
  readonly name: string
  readonly values: Values
  readonly surroundings: Surroundings
  /** How many objects of each kind there are. */
  readonly kinds: Readonly<Record<string, number>>
  /** The warning of `validate`; by default there is none. */
  readonly warning?: RegExp
}

const BASE = { ConfigMap: 1, Deployment: 1, Service: 2, ServiceAccount: 1, PodDisruptionBudget: 1, NetworkPolicy: 2 }
const ON_VOLUME = { ...BASE, PersistentVolumeClaim: 1 }

/** Values with some changed: objects are merged and `null` removes a key, as Helm does it with several files. */
export function merged(one: Values, other: Values): Values {
  const isObject = (value: unknown): value is Values => typeof value === 'object' && value !== null && !Array.isArray(value)
  const pairs = Object.entries(other).map(([key, value]) => {
    const before = one[key]
    return [key, isObject(before) && isObject(value) ? merged(before, value) : value]
  })
  return Object.fromEntries(
    Object.entries({ ...one, ...(Object.fromEntries(pairs) as Values) }).filter(([, value]) => value !== null),
  )
}

export const CASES: readonly Case[] = [
  { name: 'standalone on SQLite', values: STANDALONE, surroundings: AROUND, kinds: ON_VOLUME },
  { name: 'standalone on PostgreSQL', values: POSTGRES, surroundings: AROUND, kinds: BASE },
  {
    name: 'autoscaling by streams and CPU',
    values: merged(POSTGRES, { autoscaling: { enabled: true } }),
    surroundings: AROUND,
    kinds: { ...BASE, HorizontalPodAutoscaler: 1 },
  },
  {
    name: 'autoscaling by CPU alone',
    values: merged(POSTGRES, { autoscaling: { enabled: true, openStreams: 0, cpu: 60, maxReplicas: 12 } }),
    surroundings: AROUND,
    kinds: { ...BASE, HorizontalPodAutoscaler: 1 },
  },
  {
    name: 'monitoring',
    values: merged(POSTGRES, {
      serviceMonitor: { enabled: true, labels: { release: 'prometheus' } },
      prometheusRule: { enabled: true },
      grafanaDashboard: { enabled: true },
    }),
    surroundings: AROUND,
    kinds: { ...BASE, ServiceMonitor: 1, PrometheusRule: 1, ConfigMap: 2 },
  },
  {
    name: 'an Ingress with a certificate',
    values: merged(POSTGRES, { ingress: { enabled: true }, certificate: { enabled: true } }),
    surroundings: AROUND,
    kinds: { ...BASE, Ingress: 1, Certificate: 1 },
  },
  {
    name: 'an Ingress of another controller',
    values: merged(POSTGRES, {
      ingress: { enabled: true, className: 'haproxy', annotations: { 'haproxy.org/timeout-server': '120s' } },
      networkPolicy: {
        callers: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'haproxy-controller' } } }],
      },
    }),
    surroundings: AROUND,
    kinds: { ...BASE, Ingress: 1 },
  },
  {
    name: 'a route of the Gateway API',
    values: merged(POSTGRES, { httpRoute: { enabled: true, parentRefs: [{ name: 'chat', sectionName: 'https' }] } }),
    surroundings: AROUND,
    kinds: { ...BASE, HTTPRoute: 1 },
  },
  {
    name: 'TLS in the gateway, with a certificate of cert-manager and an Ingress',
    values: merged(POSTGRES, {
      tls: { secretName: 'gateway-tls', certificate: { enabled: true, issuerRef: { name: 'internal' } } },
      ingress: { enabled: true },
      certificate: { enabled: true },
    }),
    surroundings: AROUND,
    kinds: { ...BASE, Ingress: 1, Certificate: 2 },
  },
  {
    name: 'TLS in the gateway, with a Secret of the operator, client certificates and a port of its own',
    values: merged(POSTGRES, {
      tls: { secretName: 'gateway-tls' },
      config: {
        listen: { tls: { minVersion: 'TLSv1.3', clientCertificates: { ca: '/etc/threadwarden/clients.crt' } } },
      },
      files: { 'clients.crt': AUTHORITY },
      service: { type: 'LoadBalancer', port: 443 },
    }),
    surroundings: { ...AROUND, secrets: { ...AROUND.secrets, 'gateway-tls': ['tls.crt', 'tls.key'] } },
    kinds: BASE,
  },
  {
    name: 'TLS from a Gateway to the gateway',
    values: merged(POSTGRES, {
      tls: { secretName: 'gateway-tls', certificate: { enabled: true, issuerRef: { kind: 'Issuer', name: 'internal' } } },
      httpRoute: { enabled: true, parentRefs: [{ name: 'chat' }], backendCa: { configMap: 'internal-ca' } },
    }),
    surroundings: { ...AROUND, authorities: ['internal-ca'] },
    kinds: { ...BASE, HTTPRoute: 1, Certificate: 1, BackendTLSPolicy: 1 },
  },
  {
    name: 'TLS in the gateway with the certificate of the host, by files of the operator',
    values: merged(POSTGRES, {
      config: {
        listen: { tls: { certificateFile: '/etc/threadwarden/tls/tls.crt', keyFile: '/etc/threadwarden/tls/tls.key' } },
      },
      extraVolumes: [{ name: 'own', secret: { secretName: 'chat-tls' } }],
      extraVolumeMounts: [{ name: 'own', mountPath: '/etc/threadwarden/tls', readOnly: true }],
      httpRoute: {
        enabled: true,
        parentRefs: [{ name: 'chat' }],
        backendCa: { configMap: 'public-ca', hostname: 'chat.example.com' },
      },
    }),
    surroundings: {
      ...AROUND,
      secrets: { ...AROUND.secrets, 'chat-tls': ['tls.crt', 'tls.key'] },
      authorities: ['public-ca'],
    },
    kinds: { ...BASE, HTTPRoute: 1, BackendTLSPolicy: 1 },
  },
  {
    name: 'a Service for the runtime, and an open public port',
    values: merged(POSTGRES, {
      config: { upstream: { url: 'http://chat-threadwarden-upstream:4000' } },
      runtime: { service: { create: true } },
      networkPolicy: { callers: [] },
    }),
    surroundings: AROUND,
    kinds: { ...BASE, Service: 3 },
  },
  {
    name: 'a volume of a class and size',
    values: merged(STANDALONE, { persistence: { storageClass: 'fast', size: '5Gi', accessModes: ['ReadWriteOncePod'] } }),
    surroundings: AROUND,
    kinds: ON_VOLUME,
  },
  {
    name: 'sidecar with TLS in the gateway',
    values: merged(SIDECAR, {
      tls: { secretName: 'gateway-tls', certificate: { enabled: true, issuerRef: { name: 'internal' } } },
    }),
    surroundings: {},
    kinds: { ...ON_VOLUME, NetworkPolicy: 1, Certificate: 1 },
  },
  {
    name: 'sidecar of an agent',
    values: merged(SIDECAR, { config: { upstream: null, agents: { research: { url: 'http://127.0.0.1:4000' } } } }),
    surroundings: {},
    kinds: { ...ON_VOLUME, NetworkPolicy: 1 },
  },
  { name: 'sidecar on SQLite', values: SIDECAR, surroundings: {}, kinds: { ...ON_VOLUME, NetworkPolicy: 1 } },
  {
    name: 'sidecar on PostgreSQL with everything',
    values: merged(SIDECAR, {
      replicas: 3,
      existingSecret: 'chat-secrets',
      config: { ownership: POSTGRESQL },
      runtime: {
        port: 3000,
        initContainers: [],
        volumes: [{ name: 'cache', emptyDir: {} }],
        container: { volumeMounts: [{ name: 'cache', mountPath: '/cache' }] },
      },
      autoscaling: { enabled: true },
      serviceMonitor: { enabled: true },
      prometheusRule: { enabled: true },
      ingress: { enabled: true },
      certificate: { enabled: true },
    }),
    surroundings: { secrets: AROUND.secrets! },
    kinds: {
      ...BASE,
      NetworkPolicy: 1,
      HorizontalPodAutoscaler: 1,
      ServiceMonitor: 1,
      PrometheusRule: 1,
      Ingress: 1,
      Certificate: 1,
    },
  },
  {
    name: 'sidecar with a hook of its own and a longer grace period',
    values: merged(SIDECAR, {
      terminationGracePeriodSeconds: 120,
      runtime: { container: { lifecycle: { preStop: { sleep: { seconds: 105 } } } } },
      config: { shutdown: { delay: '20s' } },
    }),
    surroundings: {},
    kinds: { ...ON_VOLUME, NetworkPolicy: 1 },
  },
  {
    name: 'a migration in observe mode',
    values: merged(POSTGRES, { migrate: true, config: { enforcement: 'observe' } }),
    surroundings: AROUND,
    kinds: BASE,
    warning: /enforcement: observe: threads are not protected/,
  },
  {
    name: 'a migration that refuses unowned threads',
    values: merged(POSTGRES, { migrate: true, config: { ownership: { unknownThread: 'deny' } } }),
    surroundings: AROUND,
    kinds: BASE,
  },
  {
    name: 'several upstreams, a policy, and other ports',
    values: merged(POSTGRES, {
      config: {
        listen: { port: 9000, trustedProxies: ['10.0.0.0/8'] },
        health: { port: 9001 },
        upstreams: {
          legal: { url: 'http://legal:4000', basePath: '/api/copilotkit', publicPath: '/legal/copilotkit', headers: TOKEN },
        },
        agents: { research: { url: 'http://research:5000', headers: TOKEN } },
        policy: './policy.yaml',
      },
      files: { 'policy.yaml': readFileSync(`${ROOT}/policies/default.yaml`, 'utf8') },
      ingress: { enabled: true },
    }),
    surroundings: AROUND,
    kinds: { ...BASE, Ingress: 1 },
  },
  {
    name: 'everything about the pod',
    values: merged(POSTGRES, {
      image: { digest: `sha256:${'0'.repeat(64)}`, pullPolicy: 'Always' },
      imagePullSecrets: [{ name: 'registry' }],
      serviceAccount: { create: false, name: 'existing' },
      podDisruptionBudget: { maxUnavailable: '50%' },
      podLabels: { team: 'chat' },
      podAnnotations: { note: 'x' },
      priorityClassName: 'high',
      nodeSelector: { 'kubernetes.io/arch': 'amd64' },
      tolerations: [{ key: 'dedicated', operator: 'Exists' }],
      affinity: { podAntiAffinity: {} },
      topologySpreadConstraints: [
        {
          topologyKey: 'kubernetes.io/hostname',
          maxSkew: 1,
          whenUnsatisfiable: 'DoNotSchedule',
          labelSelector: { matchLabels: { team: 'chat' } },
        },
      ],
      extraEnv: [{ name: 'TZ', value: 'UTC' }],
      extraVolumes: [{ name: 'ca', configMap: { name: 'chat-threadwarden' } }],
      extraVolumeMounts: [{ name: 'ca', mountPath: '/etc/ca', readOnly: true }],
    }),
    surroundings: AROUND,
    kinds: { ...BASE, ServiceAccount: 0 },
  },
  {
    name: 'without a network policy and a budget',
    values: merged(POSTGRES, { networkPolicy: { enabled: false }, podDisruptionBudget: { enabled: false } }),
    surroundings: { ...AROUND, isRuntimeOpen: true, hasNoPolicies: true },
    kinds: { ...BASE, NetworkPolicy: 0, PodDisruptionBudget: 0 },
  },
]

export interface Refusal {
  readonly name: string
  readonly values: Values
  /** What the message names, and what it tells the operator to do. */
  readonly message: RegExp
}

export const REFUSALS: readonly Refusal[] = [
  {
    name: 'several replicas on SQLite',
    values: merged(STANDALONE, { replicas: 2 }),
    message: /replicas: 2 needs PostgreSQL.*Set config\.ownership\.store/,
  },
  {
    name: 'autoscaling on SQLite',
    values: merged(STANDALONE, { autoscaling: { enabled: true } }),
    message: /autoscaling\.enabled needs PostgreSQL.*Set config\.ownership\.store/,
  },
  {
    name: 'SQLite without a volume',
    values: merged(STANDALONE, { persistence: { enabled: false } }),
    message: /without a volume forgets.*Set persistence\.enabled to true/,
  },
  {
    name: 'SQLite beside the volume',
    values: merged(STANDALONE, { config: { ownership: { store: 'sqlite:/tmp/ownership.db' } } }),
    message: /not on the volume.*sqlite:\/data\/ownership\.db/,
  },
  {
    name: 'claim in a migration',
    values: merged(POSTGRES, { migrate: true }),
    message: /unknownThread: claim together with migrate: true.*Set config\.enforcement to observe/,
  },
  {
    name: 'claim of one of several upstreams in a migration',
    values: merged(POSTGRES, {
      migrate: true,
      config: {
        ownership: { unknownThread: 'deny' },
        agents: { research: { url: 'http://research:5000', unknownThread: 'claim' } },
      },
    }),
    message: /unknownThread: claim together with migrate: true/,
  },
  ...['NodePort', 'LoadBalancer', 'ExternalName'].map((type) => ({
    name: `a runtime Service of type ${type}`,
    values: merged(POSTGRES, { runtime: { service: { create: true, type } } }),
    message: new RegExp(`runtime\\.service\\.type: ${type} makes the runtime public.*Set it to ClusterIP`),
  })),
  {
    name: 'a runtime Service beside the sidecar',
    values: merged(SIDECAR, { runtime: { service: { create: true } } }),
    message: /runtime\.service\.create with topology: sidecar.*Set it to false/,
  },
  {
    name: 'a published port of the runtime in the pod',
    values: merged(SIDECAR, { runtime: { container: { ports: [{ containerPort: 4000 }] } } }),
    message: /runtime\.container\.ports publishes the runtime.*Remove it/,
  },
  {
    name: 'a sidecar of a runtime elsewhere',
    values: merged(SIDECAR, { config: { upstream: { url: 'http://chat-runtime:4000' } } }),
    message: /is not in the pod.*remove it/,
  },
  {
    name: 'a sidecar without a runtime',
    values: merged(SIDECAR, { runtime: { container: { image: '' } } }),
    message: /runtime\.container\.image is missing.*Set the container/,
  },
  {
    name: 'a runtime in a standalone gateway',
    values: merged(STANDALONE, { runtime: { container: CONTAINER } }),
    message: /no effect with topology: standalone.*Set topology to sidecar/,
  },
  {
    name: 'a runtime Service without a selector',
    values: merged(POSTGRES, { runtime: { selector: null, service: { create: true } } }),
    message: /runtime\.service\.create needs runtime\.selector.*Set it/,
  },
  {
    name: 'a runtime that is the gateway',
    values: merged(POSTGRES, {
      runtime: { selector: { app: null, 'app.kubernetes.io/name': 'threadwarden', 'app.kubernetes.io/instance': 'chat' } },
    }),
    message: /selects the gateway itself.*Set it/,
  },
  {
    name: 'no unknownThread',
    values: merged(STANDALONE, { config: { ownership: { unknownThread: null } } }),
    message: /config\.ownership\.unknownThread is missing.*Set it to claim if/,
  },
  {
    name: 'no issuer',
    values: merged(STANDALONE, { config: { authentication: null } }),
    message: /config\.authentication\.issuers is missing.*Set the issuer/,
  },
  {
    name: 'no upstream',
    values: merged(STANDALONE, { config: { upstream: null } }),
    message: /config\.upstream is missing.*Set config\.upstream\.url/,
  },
  {
    name: 'no upstream of a sidecar',
    values: merged(SIDECAR, { config: { upstream: null } }),
    message: /config\.upstream is missing\. Set config\.upstream\.basePath/,
  },
  ...['certificateFile', 'keyFile'].map((key) => ({
    name: `a certificate of tls.secretName and a ${key} of the configuration`,
    values: merged(STANDALONE, {
      tls: { secretName: 'gateway-tls' },
      config: { listen: { tls: { [key]: '/etc/threadwarden/x.pem' } } },
    }),
    message: /both name the certificate.*Remove certificateFile and keyFile/,
  })),
  ...[{}, { minVersion: 'TLSv1.3' }, { certificateFile: '/etc/x' }, { keyFile: '/etc/x' }].map((tls) => ({
    name: `listen.tls with nothing but ${Object.keys(tls).join()}`,
    values: merged(STANDALONE, { config: { listen: { tls } } }),
    message: /config\.listen\.tls has no certificate.*Set tls\.secretName/,
  })),
  {
    name: 'a certificate of cert-manager without a Secret',
    values: merged(STANDALONE, { tls: { certificate: { enabled: true, issuerRef: { name: 'internal' } } } }),
    message: /tls\.certificate\.enabled needs tls\.secretName.*Set it/,
  },
  {
    name: 'a certificate of cert-manager without an issuer',
    values: merged(STANDALONE, { tls: { secretName: 'gateway-tls', certificate: { enabled: true } } }),
    message: /tls\.certificate\.issuerRef\.name is missing.*Set it to an issuer/,
  },
  {
    name: 'two certificates in one Secret',
    values: merged(STANDALONE, {
      tls: { secretName: 'chat-tls', certificate: { enabled: true, issuerRef: { name: 'internal' } } },
      certificate: { enabled: true },
    }),
    message: /both write the Secret chat-tls.*Set tls\.secretName to another name/,
  },
  {
    name: 'TLS from a Gateway to a gateway without it',
    values: merged(STANDALONE, {
      httpRoute: { enabled: true, parentRefs: [{ name: 'chat' }], backendCa: { configMap: 'internal-ca' } },
    }),
    message: /httpRoute\.backendCa needs TLS in the gateway.*Set tls\.secretName/,
  },
  {
    name: 'TLS from no Gateway',
    values: merged(STANDALONE, {
      tls: { secretName: 'gateway-tls' },
      httpRoute: { backendCa: { configMap: 'internal-ca' } },
    }),
    message: /httpRoute\.backendCa has no effect.*Set httpRoute\.enabled to true/,
  },
  {
    name: 'TLS from a Gateway without a CA',
    values: merged(STANDALONE, {
      tls: { secretName: 'gateway-tls' },
      httpRoute: { enabled: true, parentRefs: [{ name: 'chat' }], backendCa: { hostname: 'chat.example.com' } },
    }),
    message: /httpRoute\.backendCa\.configMap is missing.*Set it/,
  },
  {
    name: 'a file in place of the folder of the certificate',
    values: merged(STANDALONE, { files: { tls: 'x' } }),
    message: /files|tls/,
  },
  {
    name: 'a file in place of the folder of the secrets',
    values: merged(STANDALONE, { files: { secrets: 'x' } }),
    message: /files|secrets/,
  },
  {
    name: 'an unknown value of TLS',
    values: merged(STANDALONE, { tls: { secret: 'gateway-tls' } }),
    message: /tls.*secret/,
  },
  {
    name: 'an unknown kind of issuer',
    values: merged(STANDALONE, { tls: { certificate: { issuerRef: { kind: 'issuer' } } } }),
    message: /kind/,
  },
  {
    name: 'an unknown value of the CA of the gateway',
    values: merged(STANDALONE, { httpRoute: { backendCa: { secret: 'x' } } }),
    message: /backendCa.*secret/,
  },
  {
    name: 'a drain as long as the grace period',
    values: merged(STANDALONE, { config: { shutdown: { delay: '55s' } } }),
    message: /leaves no time to end streams.*terminationGracePeriodSeconds to more than 60/,
  },
  {
    name: 'a drain as long as the grace period of a sidecar',
    values: merged(SIDECAR, { config: { shutdown: { delay: '40s' } } }),
    message: /leaves no time to end streams.*terminationGracePeriodSeconds to more than 60/,
  },
  { name: 'an unknown value', values: merged(STANDALONE, { replicaCount: 1 }), message: /replicaCount/ },
  { name: 'an unknown value inside', values: merged(STANDALONE, { persistence: { enable: false } }), message: /enable/ },
  { name: 'an unknown key of the configuration', values: merged(STANDALONE, { config: { policies: 'x' } }), message: /policies/ },
  {
    name: 'a wrong value of the configuration',
    values: merged(STANDALONE, { config: { enforcement: 'observ' } }),
    message: /enforcement/,
  },
  { name: 'another topology', values: merged(STANDALONE, { topology: 'side-car' }), message: /topology/ },
  {
    name: 'autoscaling by nothing',
    values: merged(POSTGRES, { autoscaling: { enabled: true, openStreams: 0, cpu: 0 } }),
    message: /autoscaling/,
  },
  { name: 'a route without a parent', values: merged(POSTGRES, { httpRoute: { enabled: true } }), message: /parentRefs/ },
  {
    name: 'a volume for several pods',
    values: merged(STANDALONE, { persistence: { accessModes: ['ReadWriteMany'] } }),
    message: /accessModes/,
  },
  {
    name: 'a port from the environment',
    values: merged(STANDALONE, { config: { listen: { port: '${env:PORT}' } } }),
    message: /port/,
  },
]

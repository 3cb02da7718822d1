/** What is wrong with manifests that are valid each by itself: names that do not fit, access that is too wide, time that is too short. */
import { parse } from 'yaml'
import packageJson from '../../package.json' with { type: 'json' }
import {
  selectorOf,
  selects,
  workloadsOf,
  type Container,
  type KubernetesObject,
  type Labels,
  type Pod,
  type Workload,
} from './objects.ts'

/** What the operator has besides the manifests. */
export interface Surroundings {
  /** The keys of Secrets, by name. */
  readonly secrets?: Readonly<Record<string, readonly string[]>>
  /** Pods of other manifests, with their ports. */
  readonly pods?: readonly { readonly labels: Labels; readonly ports: readonly number[] }[]
  readonly services?: readonly string[]
  readonly gateways?: readonly string[]
  /** ConfigMaps with a ca.crt. */
  readonly authorities?: readonly string[]
  /** Other pods than the gateway may still reach the runtime, as before the last step of a drop-in. */
  readonly isRuntimeOpen?: boolean
  /** The cluster has network policies of its own. */
  readonly hasNoPolicies?: boolean
}

const MARGIN_S = 5
const RUNTIME_STOP_S = 15

interface Config {
  readonly listen: {
    readonly port: number
    readonly tls?: {
      readonly certificateFile: string
      readonly keyFile: string
      readonly clientCertificates?: { readonly ca: string }
    }
  }
  readonly health: { readonly port: number }
  readonly upstream?: { readonly url: string }
  readonly ownership: { readonly store: string }
  readonly shutdown?: { readonly delay?: string }
}

export function configurationOf(objects: readonly KubernetesObject[], { pod, gateway }: Workload): string | undefined {
  const mount = gateway?.volumeMounts?.find(({ mountPath }) => mountPath === '/etc/threadwarden')
  const name = pod.volumes?.find((volume) => volume.name === mount?.name)?.configMap?.name
  return objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === name)?.data?.['threadwarden.yaml']
}

const CERTIFICATE_KEYS = ['ca.crt', 'tls.crt', 'tls.key']

/** The keys of all Secrets: those of the operator, and those that cert-manager makes. */
function secretsOf(
  objects: readonly KubernetesObject[],
  { secrets = {} }: Surroundings,
): Readonly<Record<string, readonly string[]>> {
  const made = objects
    .filter(({ kind }) => kind === 'Certificate')
    .map(({ spec }) => [(spec as { secretName: string }).secretName, CERTIFICATE_KEYS] as const)
  return { ...Object.fromEntries(made), ...secrets }
}

/** Each finding is a sentence; none is right. */
export function findings(objects: readonly KubernetesObject[], surroundings: Surroundings = {}): readonly string[] {
  const workloads = workloadsOf(objects)
  const ofKind = (kind: string): readonly KubernetesObject[] => objects.filter((object) => object.kind === kind)
  return [
    ...names(objects),
    ...workloads.flatMap((workload) => [
      ...ownSelector(workload),
      ...volumes(objects, workload, surroundings),
      ...[...(workload.pod.initContainers ?? []), ...workload.pod.containers].flatMap((container) =>
        restricted(workload.pod, container).map((fault) => `${workload.object.metadata.name}/${container.name}: ${fault}`),
      ),
      ...podRestricted(workload.pod),
      ...gatewayFaults(objects, workload, surroundings),
    ]),
    ...ofKind('Service').flatMap((service) => serviceFaults(service, workloads, surroundings)),
    ...ofKind('PodDisruptionBudget').flatMap((budget) => selectsSome(budget, selectorOf(budget, 'selector'), workloads)),
    ...ofKind('HorizontalPodAutoscaler').flatMap((scaler) => scalerFaults(scaler, workloads)),
    ...ofKind('NetworkPolicy').flatMap((policy) => policyFaults(policy, workloads, surroundings)),
    ...ofKind('ServiceMonitor').flatMap((monitor) => monitorFaults(monitor, ofKind('Service'))),
    ...[...ofKind('Ingress'), ...ofKind('HTTPRoute')].flatMap((route) => routeFaults(route, objects, surroundings)),
    ...policiesFor(ofKind('NetworkPolicy'), workloads, surroundings),
    ...unusedCertificates(objects, workloads),
    ...workloads.flatMap((workload) => tlsFaults(objects, workload, surroundings)),
  ]
}

function names(objects: readonly KubernetesObject[]): readonly string[] {
  const ids = objects.map(({ apiVersion, kind, metadata }) => `${apiVersion} ${kind} ${metadata.namespace} ${metadata.name}`)
  return [
    ...objects
      .filter(({ metadata }) => !/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(metadata.name))
      .map(({ kind, metadata }) => `${kind} ${metadata.name} is not a DNS label`),
    ...ids.filter((id, at) => ids.indexOf(id) !== at).map((id) => `${id} is there twice`),
    ...(new Set(objects.filter(({ kind }) => kind !== 'Namespace').map(({ metadata }) => metadata.namespace)).size > 1
      ? ['the objects are in several namespaces']
      : []),
  ]
}

function ownSelector({ object, labels }: Workload): readonly string[] {
  return selects(selectorOf(object, 'selector'), labels) ? [] : [`${object.metadata.name}: the selector does not select its pods`]
}

function volumes(objects: readonly KubernetesObject[], { pod }: Workload, surroundings: Surroundings): readonly string[] {
  const secrets = secretsOf(objects, surroundings)
  const has = (kind: string, name: string): boolean =>
    objects.some((object) => object.kind === kind && object.metadata.name === name)
  const mounts = [...(pod.initContainers ?? []), ...pod.containers].flatMap(({ volumeMounts = [] }) => volumeMounts)
  const declared = (pod.volumes ?? []).map(({ name }) => name)
  return [
    ...(pod.volumes ?? []).flatMap(({ name, configMap, secret, persistentVolumeClaim: claim }) => [
      ...(configMap !== undefined && !has('ConfigMap', configMap.name) ? [`no ConfigMap ${configMap.name}`] : []),
      ...(secret !== undefined && secret.optional !== true && !Object.hasOwn(secrets, secret.secretName)
        ? [`no Secret ${secret.secretName}`]
        : []),
      ...(claim !== undefined && !has('PersistentVolumeClaim', claim.claimName) ? [`no claim ${claim.claimName}`] : []),
      ...(mounts.some((mount) => mount.name === name) ? [] : [`the volume ${name} is not mounted`]),
    ]),
    ...mounts.filter(({ name }) => !declared.includes(name)).map(({ name }) => `no volume ${name}`),
    ...mounts
      .filter(({ subPath }) => subPath !== undefined)
      .map(({ name }) => `${name} is mounted with subPath: it never changes`),
  ]
}

/** The profile `restricted` of the Pod Security Standards. */
function restricted(pod: Pod, { securityContext: own = {}, ports = [] }: Container): readonly string[] {
  const all = pod.securityContext ?? {}
  const drop = own.capabilities?.drop ?? []
  const add = own.capabilities?.add ?? []
  return [
    ...((own.runAsNonRoot ?? all.runAsNonRoot) === true ? [] : ['runAsNonRoot is not true']),
    ...((own.runAsUser ?? all.runAsUser) === 0 ? ['runAsUser is 0'] : []),
    ...(own.allowPrivilegeEscalation === false ? [] : ['allowPrivilegeEscalation is not false']),
    ...(own.privileged === true ? ['it is privileged'] : []),
    ...(drop.includes('ALL') ? [] : ['it keeps capabilities']),
    ...(add.some((name) => name !== 'NET_BIND_SERVICE') ? ['it adds capabilities'] : []),
    ...(['RuntimeDefault', 'Localhost'].includes((own.seccompProfile ?? all.seccompProfile)?.type ?? '')
      ? []
      : ['there is no seccomp profile']),
    ...(ports.some(({ hostPort }) => hostPort !== undefined) ? ['it has a host port'] : []),
  ]
}

const VOLUME_KINDS = ['configMap', 'csi', 'downwardAPI', 'emptyDir', 'ephemeral', 'persistentVolumeClaim', 'projected', 'secret']

function podRestricted(pod: Pod): readonly string[] {
  return [
    ...(pod.hostNetwork === true || pod.hostPID === true || pod.hostIPC === true ? ['the pod uses namespaces of the host'] : []),
    ...(pod.volumes ?? []).flatMap((volume) =>
      Object.keys(volume)
        .filter((key) => key !== 'name' && !VOLUME_KINDS.includes(key))
        .map((key) => `the volume ${volume.name} is a ${key}`),
    ),
  ]
}

function gatewayFaults(objects: readonly KubernetesObject[], workload: Workload, surroundings: Surroundings): readonly string[] {
  const { gateway, pod, isSidecar } = workload
  if (gateway === undefined) return []
  const text = configurationOf(objects, workload)
  if (text === undefined) return ['the gateway has no threadwarden.yaml in /etc/threadwarden']
  const config = parse(text) as Config
  const ports = new Map((gateway.ports ?? []).map(({ name, containerPort }) => [name, containerPort]))
  const probes = { startupProbe: '/startupz', livenessProbe: '/livez', readinessProbe: '/readyz' } as const
  const others = pod.containers.filter((container) => container !== gateway)
  return [
    ...(gateway.image.endsWith(`:${packageJson.version}`) || gateway.image.includes('@sha256:')
      ? []
      : [`the image ${gateway.image} is not of version ${packageJson.version}`]),
    ...(ports.get('gateway') === config.listen.port ? [] : ['the port gateway is not listen.port']),
    ...(ports.get('health') === config.health.port ? [] : ['the port health is not health.port']),
    ...Object.entries(probes)
      .filter(([probe, path]) => {
        const asked = gateway[probe as keyof typeof probes]?.httpGet
        return asked?.path !== path || asked.port !== 'health'
      })
      .map(([probe, path]) => `the ${probe} does not ask ${path}`),
    ...(gateway.securityContext?.readOnlyRootFilesystem === true ? [] : ['the root file system is not read-only']),
    ...((gateway.securityContext?.runAsUser ?? pod.securityContext?.runAsUser) === 65532 ? [] : ['the user is not 65532']),
    ...(pod.securityContext?.fsGroup === 65532 ? [] : ['fsGroup is not 65532']),
    ...(pod.automountServiceAccountToken === false ? [] : ['the pod has a token for the Kubernetes API']),
    ...(gateway.resources?.limits?.['memory'] === undefined ? ['the gateway has no memory limit'] : []),
    ...(gateway.resources?.limits?.['cpu'] === undefined ? [] : ['a CPU limit delays streams']),
    ...(gateway.resources?.requests?.['cpu'] === undefined ? ['autoscaling needs a CPU request'] : []),
    ...(gateway.volumeMounts ?? [])
      .filter(({ mountPath, readOnly }) => mountPath.startsWith('/etc/') && readOnly !== true)
      .map(({ mountPath }) => `${mountPath} is writable`),
    ...grace(workload, config),
    ...store(objects, workload, config),
    ...references(objects, workload, text, surroundings),
    ...upstream(objects, config, isSidecar, surroundings),
    ...(isSidecar && gateway.restartPolicy !== 'Always' ? ['the init container is not a sidecar'] : []),
    ...(isSidecar && pod.shareProcessNamespace === true ? ['process 1 is not the gateway'] : []),
    ...(isSidecar && others.some((container) => (container.ports ?? []).length > 0) ? ['the runtime publishes a port'] : []),
  ]
}

function grace({ gateway, pod, isSidecar }: Workload, { shutdown }: Config): readonly string[] {
  const own = Number(gateway?.env?.find(({ name }) => name === 'TERMINATION_GRACE_PERIOD_SECONDS')?.value)
  const all = pod.terminationGracePeriodSeconds ?? 30
  const delay = Number(/^(\d+)s$/.exec(shutdown?.delay ?? '5s')?.[1])
  const others = pod.containers.filter(({ name }) => name !== gateway?.name)
  const hook = gateway?.lifecycle?.preStop?.exec?.command.join(' ') ?? ''
  return [
    ...(delay + MARGIN_S < own ? [] : ['the grace period of the gateway is not longer than its drain']),
    ...(own + (isSidecar ? RUNTIME_STOP_S : 0) <= all
      ? []
      : ['the pod is killed before the gateway and the runtime have stopped']),
    ...(!isSidecar && own !== all ? ['the gateway does not use the whole grace period'] : []),
    ...(isSidecar && !hook.includes('SIGTERM') ? ['the gateway drains only after the runtime has stopped'] : []),
    ...(!isSidecar && hook !== '' ? ['a hook takes time from the drain'] : []),
    ...(isSidecar && others.some(({ lifecycle }) => lifecycle?.preStop === undefined)
      ? ['the runtime stops before the gateway has drained']
      : []),
  ]
}

function store(
  objects: readonly KubernetesObject[],
  { object, pod, gateway }: Workload,
  { ownership }: Config,
): readonly string[] {
  const { replicas, strategy } = object.spec as {
    replicas?: number
    strategy?: { type: string; rollingUpdate?: { maxUnavailable: number } }
  }
  if (!ownership.store.startsWith('sqlite:')) {
    return strategy?.type === 'Recreate' || (strategy?.rollingUpdate !== undefined && strategy.rollingUpdate.maxUnavailable !== 0)
      ? ['a rolling update with PostgreSQL takes a ready pod away first']
      : []
  }
  const mount = gateway?.volumeMounts?.find(({ mountPath }) => mountPath === '/data')
  const claim = pod.volumes?.find(({ name }) => name === mount?.name)?.persistentVolumeClaim?.claimName
  const bound = objects.find(({ kind, metadata }) => kind === 'PersistentVolumeClaim' && metadata.name === claim)
  const modes = (bound?.spec as { accessModes: readonly string[] } | undefined)?.accessModes
  return [
    ...(replicas === 1 ? [] : ['several replicas share a SQLite file']),
    ...(strategy?.type === 'Recreate' && strategy.rollingUpdate === undefined
      ? []
      : ['two pods open a SQLite file during an update']),
    ...(ownership.store.startsWith('sqlite:/data/') ? [] : ['the SQLite file is not in /data']),
    ...(claim === undefined ? ['/data is not a volume that outlives the pod'] : []),
    ...(modes === undefined || modes.includes('ReadWriteOncePod') ? [] : ['several pods may write to the volume']),
  ]
}

/** Files that the configuration names are in a ConfigMap or a Secret. */
function references(
  objects: readonly KubernetesObject[],
  { pod, gateway }: Workload,
  text: string,
  surroundings: Surroundings,
): readonly string[] {
  const secrets = secretsOf(objects, surroundings)
  const keys = (name: string): readonly string[] => {
    const volume = pod.volumes?.find((one) => one.name === name)
    const map = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === volume?.configMap?.name)
    return [...Object.keys(map?.data ?? {}), ...(secrets[volume?.secret?.secretName ?? ''] ?? [])]
  }
  const files = new Set(
    (gateway?.volumeMounts ?? []).flatMap(({ name, mountPath }) => keys(name).map((key) => `${mountPath}/${key}`)),
  )
  const { tls } = (parse(text) as Config).listen
  const ofTls = tls === undefined ? [] : [tls.certificateFile, tls.keyFile, tls.clientCertificates?.ca]
  return [...Array.from(text.matchAll(/\$\{file:([^}]+)\}/g), ([, path]) => path), ...ofTls]
    .filter((path) => path !== undefined)
    .filter((path) => !files.has(path))
    .map((path) => `no file ${path}`)
}

function upstream(
  objects: readonly KubernetesObject[],
  config: Config,
  isSidecar: boolean,
  { services = [] }: Surroundings,
): readonly string[] {
  if (config.upstream === undefined) return []
  const { hostname } = new URL(config.upstream.url)
  if (isSidecar) return ['127.0.0.1', 'localhost'].includes(hostname) ? [] : ['the upstream of the sidecar is not on loopback']
  const known = [...objects.filter(({ kind }) => kind === 'Service').map(({ metadata }) => metadata.name), ...services]
  return known.includes(hostname) ? [] : [`no Service ${hostname} for the upstream`]
}

interface Port {
  readonly name?: string
  readonly port: number
  readonly targetPort?: number | string
  readonly appProtocol?: string
}

function serviceFaults(
  { metadata, spec }: KubernetesObject,
  workloads: readonly Workload[],
  { pods = [] }: Surroundings,
): readonly string[] {
  const { selector, ports, type } = spec as { selector: Labels; ports: readonly Port[]; type?: string }
  const selected = workloads.filter(({ labels }) => selects(selector, labels))
  const elsewhere = pods.filter(({ labels }) => selects(selector, labels))
  const known: readonly (readonly (number | string)[])[] = [
    ...selected.map(({ pod }) => [...(pod.initContainers ?? []), ...pod.containers].flatMap(portsOf)),
    ...elsewhere.map((pod) => pod.ports),
  ]
  const isRuntime = selected.some(({ gateway }) => gateway === undefined) || elsewhere.length > 0
  const isHealth = selected.some(({ gateway }) =>
    ports.some((port) =>
      gateway?.ports?.some(({ name, containerPort }) => name === 'health' && containerPort === port.targetPort),
    ),
  )
  return [
    ...(known.length === 0 ? [`the Service ${metadata.name} selects no pods`] : []),
    ...(known.length > 1 ? [`the Service ${metadata.name} selects pods of several kinds`] : []),
    ...ports
      .filter(({ port, targetPort = port }) => !known.every((numbers) => numbers.includes(targetPort)))
      .map(({ port }) => `port ${port} of the Service ${metadata.name} leads to no port`),
    ...((isRuntime || isHealth) && (type ?? 'ClusterIP') !== 'ClusterIP'
      ? [`the Service ${metadata.name} publishes the runtime or the health listener`]
      : []),
    ...(isHealth && ports.length > 1 ? [`the Service ${metadata.name} publishes the health port to callers`] : []),
  ]
}

function portsOfService({ spec }: KubernetesObject): readonly Port[] {
  return (spec as { ports: readonly Port[] }).ports
}

function portsOf({ ports = [] }: Container): readonly (number | string)[] {
  return ports.flatMap(({ name, containerPort }) => (name === undefined ? [containerPort] : [containerPort, name]))
}

function selectsSome(
  { kind, metadata }: KubernetesObject,
  labels: Labels | undefined,
  workloads: readonly Workload[],
): readonly string[] {
  return workloads.some((workload) => selects(labels, workload.labels)) ? [] : [`${kind} ${metadata.name} selects no pods`]
}

function scalerFaults({ metadata, spec }: KubernetesObject, workloads: readonly Workload[]): readonly string[] {
  const { scaleTargetRef: target, metrics } = spec as {
    scaleTargetRef: { kind: string; name: string }
    metrics: readonly { pods?: { metric: { name: string } } }[]
  }
  const scaled = workloads.find(({ object }) => object.kind === target.kind && object.metadata.name === target.name)
  return [
    ...(scaled === undefined ? [`${metadata.name} scales nothing`] : []),
    ...((scaled?.object.spec as { replicas?: number } | undefined)?.replicas === undefined
      ? []
      : ['the manifest resets the number of replicas']),
    ...metrics
      .flatMap(({ pods }) => (pods === undefined ? [] : [pods.metric.name]))
      .filter((name) => name !== 'threadwarden_open_streams')
      .map((name) => `no metric ${name}`),
  ]
}

interface Peer {
  readonly podSelector?: { readonly matchLabels?: Labels }
  readonly namespaceSelector?: object
}

interface Rule {
  readonly from?: readonly Peer[]
  readonly ports?: readonly { readonly port: number }[]
}

function policyFaults(
  { metadata, spec }: KubernetesObject,
  workloads: readonly Workload[],
  { pods = [] }: Surroundings,
): readonly string[] {
  const { podSelector, ingress, policyTypes } = spec as {
    podSelector: { matchLabels: Labels }
    ingress: readonly Rule[]
    policyTypes: readonly string[]
  }
  const chosen = workloads.filter(({ labels }) => selects(podSelector.matchLabels, labels))
  const isElsewhere = pods.some(({ labels }) => selects(podSelector.matchLabels, labels))
  const gateways = chosen.filter(({ gateway }) => gateway !== undefined)
  const admitted = ingress.flatMap(({ ports }) => (ports ?? [{ port: 0 }]).map(({ port }) => port))
  const health = gateways.flatMap(({ gateway }) => gateway?.ports ?? []).find(({ name }) => name === 'health')?.containerPort
  return [
    ...(chosen.length === 0 && !isElsewhere ? [`${metadata.name} selects no pods`] : []),
    ...(policyTypes.includes('Ingress') ? [] : [`${metadata.name} is not about incoming connections`]),
    ...(gateways.length > 0
      ? admitted
          .filter((port) => !gateways.every(({ gateway }) => portsOf(gateway!).includes(port)))
          .map((port) => `${metadata.name} admits port ${port}, which is not one of the gateway`)
      : ingress.every(
            ({ from, ports }) =>
              ports !== undefined &&
              from !== undefined &&
              from.length > 0 &&
              from.every(
                ({ podSelector: peer, namespaceSelector }) =>
                  namespaceSelector === undefined &&
                  workloads.some(({ gateway, labels }) => gateway !== undefined && selects(peer?.matchLabels, labels)),
              ),
          )
        ? []
        : [`${metadata.name} admits others than the gateway to the runtime`]),
    ...ingress
      .filter(({ from, ports }) => from === undefined && ports?.some(({ port }) => port === health) === true)
      .map(() => `${metadata.name} admits all to the health port`),
  ]
}

/** Pods without a policy are open to the whole cluster. */
function policiesFor(
  policies: readonly KubernetesObject[],
  workloads: readonly Workload[],
  { pods = [], isRuntimeOpen = false, hasNoPolicies = false }: Surroundings,
): readonly string[] {
  const isOpen = (labels: Labels): boolean => !policies.some((policy) => selects(selectorOf(policy, 'podSelector'), labels))
  return [
    ...workloads
      .filter(({ labels }) => !hasNoPolicies && isOpen(labels))
      .map(({ object }) => `no NetworkPolicy for ${object.metadata.name}`),
    ...pods.filter(({ labels }) => !isRuntimeOpen && isOpen(labels)).map(() => 'callers reach the runtime without the gateway'),
  ]
}

function monitorFaults({ spec }: KubernetesObject, services: readonly KubernetesObject[]): readonly string[] {
  const { selector, endpoints, jobLabel } = spec as {
    selector: { matchLabels: Labels }
    jobLabel?: string
    endpoints: readonly { port: string; path: string; relabelings?: readonly { targetLabel: string; replacement: string }[] }[]
  }
  const watched = services.filter(({ metadata }) => selects(selector.matchLabels, metadata.labels))
  return [
    ...(watched.length === 1 ? [] : [`the ServiceMonitor watches ${watched.length} Services`]),
    ...endpoints.flatMap(({ port, path, relabelings = [] }) => [
      ...(path === '/metrics' ? [] : ['the ServiceMonitor does not ask /metrics']),
      ...(watched.every((service) => portsOfService(service).some(({ name }) => name === port))
        ? []
        : [`the Service has no port ${port}`]),
      ...(relabelings.some(({ targetLabel, replacement }) => targetLabel === 'job' && replacement === 'threadwarden') ||
      watched.every(({ metadata }) => metadata.labels?.[jobLabel ?? ''] === 'threadwarden')
        ? []
        : ['the job is not threadwarden, as the alert rules expect']),
    ]),
  ]
}

function routeFaults(
  { kind, spec }: KubernetesObject,
  objects: readonly KubernetesObject[],
  { gateways = [] }: Surroundings,
): readonly string[] {
  const services = objects.filter((object) => object.kind === 'Service')
  const hasPort = (name: string, wanted: { name?: string; number?: number }): boolean =>
    services.some(
      (service) =>
        service.metadata.name === name &&
        service.metadata.labels?.['app.kubernetes.io/component'] === 'gateway' &&
        portsOfService(service).some((one) =>
          wanted.name === undefined ? one.port === wanted.number : one.name === wanted.name,
        ),
    )
  if (kind === 'Ingress') {
    const { rules, tls } = spec as {
      tls?: readonly { hosts: readonly string[]; secretName: string }[]
      rules: readonly {
        host: string
        http: { paths: readonly { backend: { service: { name: string; port: { name?: string; number?: number } } } }[] }
      }[]
    }
    return [
      ...rules.flatMap(({ http }) =>
        http.paths
          .filter(({ backend: { service } }) => !hasPort(service.name, service.port))
          .map(({ backend }) => `the Ingress leads to no port of the gateway: ${backend.service.name}`),
      ),
      ...rules
        .filter(({ host }) => tls?.some(({ hosts }) => hosts.includes(host)) !== true)
        .map(({ host }) => `${host} has no TLS`),
    ]
  }
  const { rules, parentRefs } = spec as {
    parentRefs: readonly { name: string }[]
    rules: readonly { timeouts?: { request?: string }; backendRefs: readonly { name: string; port: number }[] }[]
  }
  const parents = objects.filter((object) => object.kind === 'Gateway')
  return [
    ...rules.flatMap(({ backendRefs, timeouts }) => [
      ...backendRefs
        .filter(({ name, port }) => !hasPort(name, { number: port }))
        .map(({ name }) => `the HTTPRoute leads to no port of the gateway: ${name}`),
      ...(timeouts?.request === '0s' ? [] : ['the HTTPRoute cuts streams']),
    ]),
    ...parentRefs
      .filter(({ name }) => !parents.some(({ metadata }) => metadata.name === name) && !gateways.includes(name))
      .map(({ name }) => `no Gateway ${name}`),
  ]
}

interface Listener {
  readonly tls: { readonly certificateRefs: readonly { readonly name: string }[] }
}

/** Secrets with certificates that an Ingress, a Gateway or a pod uses. */
function unusedCertificates(objects: readonly KubernetesObject[], workloads: readonly Workload[]): readonly string[] {
  const used = [
    ...workloads.flatMap(({ pod }) => (pod.volumes ?? []).map(({ secret }) => secret?.secretName)),
    ...objects.flatMap(({ kind, spec }) => {
      if (kind === 'Ingress')
        return ((spec as { tls?: readonly { secretName: string }[] }).tls ?? []).map((tls) => tls.secretName)
      if (kind !== 'Gateway') return []
      const { listeners } = spec as { listeners: readonly Listener[] }
      return listeners.flatMap(({ tls }) => tls.certificateRefs.map(({ name }) => name))
    }),
  ]
  return Object.keys(secretsOf(objects, {}))
    .filter((name) => !used.includes(name))
    .map((name) => `the certificate in ${name} is not used`)
}

/** Whether all that leads to the public port speaks to it as it expects. */
function tlsFaults(
  objects: readonly KubernetesObject[],
  workload: Workload,
  { authorities = [] }: Surroundings,
): readonly string[] {
  const { pod, gateway, labels } = workload
  const text = configurationOf(objects, workload)
  if (gateway === undefined || text === undefined) return []
  const { listen } = parse(text) as Config
  const scheme = listen.tls === undefined ? 'http' : 'https'
  const certificates = objects.filter(({ kind }) => kind === 'Certificate')
  const mounted = certificates.filter(({ spec }) =>
    pod.volumes?.some(({ secret }) => secret?.secretName === (spec as { secretName: string }).secretName),
  )
  const hosts = mounted.flatMap(({ spec }) => (spec as { dnsNames: readonly string[] }).dnsNames)
  const services = objects.filter(
    ({ kind, spec, metadata }) =>
      kind === 'Service' &&
      metadata.labels?.['app.kubernetes.io/component'] === 'gateway' &&
      selects((spec as { selector: Labels }).selector, labels),
  )
  const policies = objects.filter(({ kind }) => kind === 'BackendTLSPolicy')
  const routes = objects.filter(({ kind }) => kind === 'HTTPRoute')
  const isNginx = ({ metadata }: KubernetesObject): boolean =>
    Object.keys(metadata.annotations ?? {}).some((key) => key.startsWith('nginx.ingress.kubernetes.io/'))
  return [
    ...(mounted.length > 0 && listen.tls === undefined ? ['the gateway has a certificate, but no listen.tls'] : []),
    ...services.flatMap((service) => [
      ...portsOfService(service)
        .filter(({ name, appProtocol }) => name !== scheme || appProtocol !== scheme)
        .map(({ port }) => `port ${port} of the Service ${service.metadata.name} is not named and marked as ${scheme}`),
      ...(mounted.length === 0 || hosts.includes(`${service.metadata.name}.${service.metadata.namespace}.svc`)
        ? []
        : [`the certificate of the gateway is not for the Service ${service.metadata.name}`]),
    ]),
    ...objects
      .filter((object) => object.kind === 'Ingress' && isNginx(object))
      .filter(
        ({ metadata }) =>
          (metadata.annotations?.['nginx.ingress.kubernetes.io/backend-protocol'] ?? 'HTTP').toLowerCase() !== scheme,
      )
      .map(({ metadata }) => `the Ingress ${metadata.name} does not speak ${scheme} to the gateway`),
    ...(policies.length > 0 && listen.tls === undefined ? ['the Gateway speaks TLS to a gateway without it'] : []),
    ...(policies.length === 0 && listen.tls !== undefined && routes.length > 0
      ? ['the Gateway speaks plain HTTP to a gateway with TLS']
      : []),
    ...policies.flatMap(({ spec }) => {
      const { targetRefs, validation } = spec as BackendTls
      return [
        ...targetRefs
          .filter(({ name }) => !services.some(({ metadata }) => metadata.name === name))
          .map(({ name }) => `the BackendTLSPolicy is about no Service of the gateway: ${name}`),
        ...(mounted.length === 0 || hosts.includes(validation.hostname)
          ? []
          : [`the certificate of the gateway is not for ${validation.hostname}`]),
        ...validation.caCertificateRefs
          .filter(({ kind, name }) => kind !== 'ConfigMap' || !authorities.includes(name))
          .map(({ name }) => `no ConfigMap ${name} with a ca.crt`),
      ]
    }),
  ]
}

interface BackendTls {
  readonly targetRefs: readonly { readonly name: string }[]
  readonly validation: {
    readonly hostname: string
    readonly caCertificateRefs: readonly { readonly kind: string; readonly name: string }[]
  }
}

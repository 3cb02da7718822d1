/**
 * Pods for podman from the manifests of deploy/kubernetes. Everything that this file changes is something that podman 4.3 cannot
 * do, or the address of a part of the test. docs/how-to/deploy/pods-of-podman.md lists the changes with their reasons.
 */
import {
  mkdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
  chownSync,
  chmodSync,
  existsSync,
  readlinkSync,
  rmSync,
} from 'node:fs'
import { join } from 'node:path'
import { parse, parseAllDocuments, stringify } from 'yaml'

export const IMAGES = { gateway: 'localhost/threadwarden:check', examples: 'localhost/threadwarden-examples:check' } as const

/** The group of the gateway, which reads the files of its volumes. */
const GROUP = 65532

interface Mount {
  readonly name: string
  readonly mountPath: string
  readonly readOnly?: boolean
}

interface Container {
  readonly name: string
  readonly restartPolicy?: string
  readonly volumeMounts?: readonly Mount[]
  readonly [key: string]: unknown
}

interface Volume {
  readonly name: string
  readonly configMap?: object
  readonly secret?: object
  readonly persistentVolumeClaim?: object
}

interface PodSpec {
  readonly terminationGracePeriodSeconds?: number
  readonly initContainers?: readonly Container[]
  readonly containers: readonly Container[]
  readonly volumes?: readonly Volume[]
  readonly [key: string]: unknown
}

interface Manifest {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly data?: Readonly<Record<string, string>>
  readonly spec?: { readonly template?: { readonly spec: PodSpec } }
}

/** A configuration, as far as the checks change it. */
export interface Configuration {
  readonly authentication: { readonly issuers: Readonly<Record<string, object>> }
  readonly ownership: { readonly postgres?: object }
  readonly limits?: object
}

/** What a set of manifests has. */
export interface Overlay {
  readonly pod: PodSpec
  readonly configuration: Configuration
}

/** Reads what `kubectl kustomize` wrote: the Deployment and the ConfigMap, of which there is one each. */
export function readOverlay(file: string): Overlay {
  const manifests = parseAllDocuments(readFileSync(file, 'utf8')).map((document) => document.toJS() as Manifest)
  const [deployment] = manifests.filter(({ kind }) => kind === 'Deployment')
  const pod = deployment?.spec?.template?.spec
  const text = manifests.find(({ kind }) => kind === 'ConfigMap')?.data?.['threadwarden.yaml']
  if (pod === undefined) throw new Error(`${file} has no Deployment`)
  return { pod, configuration: parse(text ?? '{}') as Configuration }
}

/** What the preStop hook of a container runs. */
export function preStop({ initContainers = [], containers }: PodSpec, name: string): readonly string[] {
  const container = [...initContainers, ...containers].find((one) => one.name === name)
  const { exec } = (container?.['lifecycle'] as { preStop?: { exec?: { command?: string[] } } } | undefined)?.preStop ?? {}
  return exec?.command ?? []
}

export interface PodOptions {
  readonly name: string
  /** Where the files of ConfigMaps and Secrets and the data of claims are. */
  readonly folder: string
  /** Host names of Services, with the addresses behind them. */
  readonly services?: Readonly<Record<string, string>>
  /** Where the runtime of the pod finds its agent. */
  readonly agentUrl: string
}

/** Writes the manifest of a pod for `podman kube play`, and returns its file. */
export function writePod(pod: PodSpec, { name, folder, services = {}, agentUrl }: PodOptions): string {
  // podman waits for an init container to end before it starts the others, also for a native sidecar.
  const sidecars = (pod.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always')
  const spec = {
    ...pod,
    restartPolicy: 'Always',
    initContainers: undefined,
    containers: [...sidecars, ...pod.containers].map((container) => containerOf(container, agentUrl)),
    volumes: (pod.volumes ?? []).map((volume) => volumeOf(volume, folder)),
    hostAliases: Object.entries(services).map(([host, ip]) => ({ ip, hostnames: [host] })),
  }
  const file = join(folder, 'pod.yaml')
  writeFileSync(file, stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec }, { aliasDuplicateObjects: false }))
  return file
}

/**
 * What podman does in another way: probes need systemd, and there are no hooks, so the checks do both as the kubelet does. Ports are
 * published on the host.
 */
const NOT_FOR_PODMAN = ['startupProbe', 'livenessProbe', 'readinessProbe', 'lifecycle', 'restartPolicy', 'ports']

function containerOf(container: Container, agentUrl: string): object {
  const kept = Object.fromEntries(Object.entries(container).filter(([key]) => !NOT_FOR_PODMAN.includes(key)))
  const local = { ...kept, imagePullPolicy: 'Never' }
  if (container.name === 'threadwarden') return { ...local, image: IMAGES.gateway }
  return { ...local, image: IMAGES.examples, args: ['examples/runtime.ts', '--agent-url', agentUrl] }
}

/** podman copies a ConfigMap once; here it is a folder, as the kubelet mounts it, so that a change arrives. */
function volumeOf({ name, configMap, secret, persistentVolumeClaim }: Volume, folder: string): object {
  const part = configMap !== undefined ? 'config' : secret !== undefined ? 'secrets' : 'data'
  if (part === 'data' && persistentVolumeClaim === undefined) throw new Error(`the volume ${name} is of an unknown kind`)
  return { name, hostPath: { path: join(folder, part), type: 'Directory' } }
}

/** Makes the folders of a pod. */
export function makeVolumes(folder: string): void {
  for (const part of ['config', 'secrets', 'data']) {
    mkdirSync(join(folder, part), { recursive: true })
    chownSync(join(folder, part), 0, GROUP)
    chmodSync(join(folder, part), part === 'data' ? 0o2770 : 0o750)
  }
  // The kubelet makes the places of mounts that are inside others.
  mkdirSync(join(folder, 'config/secrets'), { recursive: true })
}

let generation = 0

/** Writes the files of a ConfigMap or Secret as the kubelet does: into a new folder, to which one link then points. */
export function writeVolume(folder: string, files: Readonly<Record<string, string>>): void {
  generation += 1
  const data = `..${generation}`
  mkdirSync(join(folder, data))
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(folder, data, name), text, { mode: 0o440 })
    chownSync(join(folder, data, name), 0, GROUP)
    if (!existsSync(join(folder, name))) symlinkSync(join('..data', name), join(folder, name))
  }
  const before = existsSync(join(folder, '..data')) ? readlinkSync(join(folder, '..data')) : undefined
  symlinkSync(data, join(folder, '..data_tmp'))
  renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
  if (before !== undefined) rmSync(join(folder, before), { recursive: true })
}

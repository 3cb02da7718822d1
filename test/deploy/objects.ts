/** Kubernetes objects as the manifests have them. */
import { parseAllDocuments } from 'yaml'

export type Labels = Readonly<Record<string, string>>

export interface Metadata {
  readonly name: string
  readonly namespace?: string
  readonly labels?: Labels
  readonly annotations?: Labels
}

/** An object of any kind. Which keys it may have is checked elsewhere: types.ts. */
export interface KubernetesObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: Metadata
  readonly spec?: unknown
  readonly data?: Labels
}

export interface Container {
  readonly name: string
  readonly image: string
  readonly restartPolicy?: string
  readonly env?: readonly { readonly name: string; readonly value?: string }[]
  readonly ports?: readonly { readonly name?: string; readonly containerPort: number; readonly hostPort?: number }[]
  readonly lifecycle?: { readonly preStop?: { readonly exec?: { readonly command: readonly string[] } } }
  readonly startupProbe?: Probe
  readonly livenessProbe?: Probe
  readonly readinessProbe?: Probe
  readonly resources?: { readonly requests?: Labels; readonly limits?: Labels }
  readonly securityContext?: SecurityContext
  readonly volumeMounts?: readonly {
    readonly name: string
    readonly mountPath: string
    readonly subPath?: string
    readonly readOnly?: boolean
  }[]
}

export interface Probe {
  readonly httpGet?: { readonly path: string; readonly port: string | number }
}

export interface SecurityContext {
  readonly runAsNonRoot?: boolean
  readonly runAsUser?: number
  readonly fsGroup?: number
  readonly privileged?: boolean
  readonly allowPrivilegeEscalation?: boolean
  readonly readOnlyRootFilesystem?: boolean
  readonly capabilities?: { readonly drop?: readonly string[]; readonly add?: readonly string[] }
  readonly seccompProfile?: { readonly type: string }
}

export interface Pod {
  readonly serviceAccountName?: string
  readonly automountServiceAccountToken?: boolean
  readonly terminationGracePeriodSeconds?: number
  readonly hostNetwork?: boolean
  readonly hostPID?: boolean
  readonly hostIPC?: boolean
  readonly shareProcessNamespace?: boolean
  readonly securityContext?: SecurityContext
  readonly initContainers?: readonly Container[]
  readonly containers: readonly Container[]
  readonly volumes?: readonly Volume[]
}

export interface Volume {
  readonly name: string
  readonly configMap?: { readonly name: string }
  readonly secret?: { readonly secretName: string; readonly optional?: boolean }
  readonly persistentVolumeClaim?: { readonly claimName: string }
}

export interface Workload {
  readonly object: KubernetesObject
  readonly labels: Labels
  readonly pod: Pod
  /** The container of the gateway, wherever it is. */
  readonly gateway: Container | undefined
  readonly isSidecar: boolean
}

export function objectsIn(text: string): readonly KubernetesObject[] {
  return parseAllDocuments(text)
    .map((document) => {
      if (document.errors.length > 0) throw document.errors[0]!
      return document.toJS() as KubernetesObject | null
    })
    .filter((object) => object !== null)
}

export function workloadsOf(objects: readonly KubernetesObject[]): readonly Workload[] {
  return objects
    .filter(({ kind }) => kind === 'Deployment')
    .map((object) => {
      const { metadata, spec: pod } = (object.spec as { template: { metadata: Metadata; spec: Pod } }).template
      const sidecar = pod.initContainers?.find(isGateway)
      return {
        object,
        pod,
        labels: metadata.labels ?? {},
        gateway: sidecar ?? pod.containers.find(isGateway),
        isSidecar: sidecar !== undefined,
      }
    })
}

function isGateway({ name }: Container): boolean {
  return name === 'threadwarden'
}

/** The labels of the pods that an object is about, where it has a selector of that name. */
export function selectorOf({ spec }: KubernetesObject, name: 'selector' | 'podSelector'): Labels | undefined {
  return (spec as Partial<Record<typeof name, { matchLabels?: Labels }>>)[name]?.matchLabels
}

export function selects(selector: Labels | undefined, labels: Labels | undefined): boolean {
  const wanted = Object.entries(selector ?? {})
  return wanted.length > 0 && wanted.every(([name, value]) => labels?.[name] === value)
}

/** The Kustomize overlays, built by kubectl. */
import { writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { makeFolder } from '../../testing/support/gateway.ts'
import { ROOT } from '../suites/suites.ts'
import type { Surroundings } from './findings.ts'
import { objectsIn, type KubernetesObject } from './objects.ts'
import { runTool, TOOLS } from './tools.ts'

export const FOLDER = join(ROOT, 'deploy/kubernetes')
export const RUNTIME = { labels: { 'app.kubernetes.io/name': 'chat-runtime' }, ports: [4000] }
const SECRETS = { threadwarden: ['database-password', 'service-token'] }
export const STANDALONE: Surroundings = { secrets: SECRETS, services: ['chat-runtime'], pods: [RUNTIME] }

export interface Build {
  readonly name: string
  readonly path: string
  /** Added as an operator adds them to a copy of the overlay. */
  readonly components?: readonly string[]
  /** The operator has written listen.tls in threadwarden.yaml. */
  readonly hasTls?: true
  readonly surroundings: Surroundings
  /** Without a gateway of its own, there is nothing to check but the objects. */
  readonly isPart?: true
}

export const BUILDS: readonly Build[] = [
  { name: 'base gateway', path: 'bases/gateway', surroundings: {}, isPart: true },
  { name: 'base runtime', path: 'bases/runtime', surroundings: {}, isPart: true },
  { name: 'sidecar', path: 'overlays/sidecar', surroundings: {} },
  {
    name: 'sidecar with monitoring and an Ingress',
    path: 'overlays/sidecar',
    components: ['monitoring', 'ingress'],
    surroundings: {},
  },
  { name: 'sidecar with the Gateway API', path: 'overlays/sidecar', components: ['gateway-api'], surroundings: {} },
  { name: 'standalone', path: 'overlays/standalone', surroundings: STANDALONE },
  {
    name: 'standalone with everything and an Ingress',
    path: 'overlays/standalone',
    components: ['autoscaling', 'monitoring', 'grafana-dashboard', 'ingress'],
    surroundings: STANDALONE,
  },
  {
    name: 'standalone with the Gateway API',
    path: 'overlays/standalone',
    components: ['gateway-api', 'monitoring'],
    surroundings: STANDALONE,
  },
  {
    name: 'sidecar with TLS and an Ingress',
    path: 'overlays/sidecar',
    components: ['ingress', 'sidecar-tls'],
    hasTls: true,
    surroundings: {},
  },
  {
    name: 'standalone with TLS and an Ingress',
    path: 'overlays/standalone',
    components: ['ingress', 'tls'],
    hasTls: true,
    surroundings: STANDALONE,
  },
  {
    name: 'standalone with TLS and the Gateway API',
    path: 'overlays/standalone',
    components: ['gateway-api', 'tls', 'gateway-api-tls'],
    hasTls: true,
    surroundings: { ...STANDALONE, authorities: ['threadwarden-ca'] },
  },
  {
    name: 'drop-in, installed with TLS',
    path: 'overlays/drop-in/install',
    components: ['tls'],
    hasTls: true,
    surroundings: { secrets: SECRETS, pods: [RUNTIME], isRuntimeOpen: true },
  },
  { name: 'drop-in, before', path: 'overlays/drop-in/existing', surroundings: { pods: [RUNTIME], isRuntimeOpen: true } },
  {
    name: 'drop-in, installed',
    path: 'overlays/drop-in/install',
    surroundings: { secrets: SECRETS, pods: [RUNTIME], isRuntimeOpen: true },
  },
  {
    name: 'drop-in, switched',
    path: 'overlays/drop-in/switch',
    surroundings: { secrets: SECRETS, pods: [RUNTIME], isRuntimeOpen: true },
  },
  { name: 'drop-in, locked', path: 'overlays/drop-in/lock', surroundings: { secrets: SECRETS, pods: [RUNTIME] } },
]

/** What kubectl builds. Both versions of it build the same, without a warning. */
export function built({ path, components = [] }: Pick<Build, 'path' | 'components'>): string {
  const { folder: copy, remove } = makeFolder()
  try {
    const to = (name: string): string => relative(copy, join(FOLDER, name))
    writeFileSync(
      join(copy, 'kustomization.yaml'),
      JSON.stringify({
        namespace: 'chat',
        resources: [to(path)],
        components: components.map((name) => to(`components/${name}`)),
      }),
    )
    const target = components.length === 0 ? join(FOLDER, path) : copy
    const [newest, ...others] = TOOLS.map(({ kubectl }) => runTool(kubectl, ['kustomize', target], copy))
    if (newest?.code !== 0 || newest.stderr !== '') throw new Error(newest?.stderr)
    for (const other of others) if (other.stdout !== newest.stdout) throw new Error(`another kubectl builds ${path} differently`)
    return newest.stdout
  } finally {
    remove()
  }
}

const LISTEN_TLS = 'tls: { certificateFile: /etc/threadwarden/tls/tls.crt, keyFile: /etc/threadwarden/tls/tls.key }'

/** The objects, with a change of threadwarden.yaml that an operator makes besides adding a component. */
export function configured(objects: readonly KubernetesObject[], change: (text: string) => string): readonly KubernetesObject[] {
  return objects.map((object) => {
    const text = object.kind === 'ConfigMap' ? object.data?.['threadwarden.yaml'] : undefined
    return text === undefined ? object : { ...object, data: { ...object.data, 'threadwarden.yaml': change(text) } }
  })
}

export const BUILT = BUILDS.map((build) => {
  const objects = objectsIn(built(build))
  return {
    ...build,
    objects: build.hasTls === true ? configured(objects, (text) => text.replace('  port: 8080', `$&\n  ${LISTEN_TLS}`)) : objects,
  }
})

export const objectsOf = (name: string): readonly KubernetesObject[] => BUILT.find((one) => one.name === name)!.objects

export const one = (objects: readonly KubernetesObject[], kind: string, name: string): KubernetesObject => {
  const found = objects.find((object) => object.kind === kind && object.metadata.name === name)
  if (found === undefined) throw new Error(`no ${kind} ${name}`)
  return found
}

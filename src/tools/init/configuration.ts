/** Writes a commented configuration from the operator's wishes and the answers of the servers, and lists the assumptions. */
import { Document, isMap, isScalar, visit, type Node } from 'yaml'
import type { FoundIssuer } from './issuer.ts'
import type { FoundAgent, FoundRuntime } from './upstream.ts'

export const DEFAULT_AUDIENCE = 'agent-chat'
const DEFAULT_BASE_PATH = '/api/copilotkit'
const DEFAULT_ALGORITHMS = ['RS256', 'ES256']

export const UNKNOWN_THREAD = ['claim', 'verify', 'deny'] as const
export type UnknownThread = (typeof UNKNOWN_THREAD)[number]

/** Paths of files are as the configuration needs them: absolute, or relative to its folder. */
export interface Wishes {
  readonly origin: string
  /** `''` or `/a/b`. */
  readonly path: string
  readonly agentId: string | null
  /** Name and file of each header. */
  readonly upstreamHeaders: readonly (readonly [name: string, file: string])[]
  readonly upstreamCa: string | null
  readonly issuerId: string
  readonly issuer: string
  readonly jwksUri: string | null
  readonly issuerCa: string | null
  /** Empty if the operator named none. */
  readonly audiences: readonly string[]
  readonly origins: readonly string[]
  readonly store: string | null
  readonly unknownThread: UnknownThread | null
}

/** Null for a server that was not asked. */
export interface Found {
  readonly upstream: FoundRuntime | FoundAgent | null
  readonly issuer: FoundIssuer | null
}

export interface Written {
  readonly text: string
  readonly found: readonly string[]
  /** Each with how to change it. */
  readonly assumed: readonly string[]
}

export function writeConfiguration(wishes: Wishes, found: Found): Written {
  const upstream = describeUpstream(wishes, found.upstream)
  const issuer = describeIssuer(wishes, found.issuer)
  const ownership = chooseOwnership(wishes, found.upstream)
  const { store, origins } = wishes
  const isManaged = found.upstream?.kind === 'runtime' && found.upstream.facts.managed
  const tree = {
    version: 1,
    listen: { host: '0.0.0.0', port: 8080 },
    health: { host: '0.0.0.0', port: 8081 },
    ...upstream.tree,
    ...(origins.length === 0 ? {} : { cors: { origins } }),
    authentication: { issuers: { [wishes.issuerId]: issuer.tree } },
    ownership: { ...(store === null ? {} : { store }), ...ownership.tree },
    ...(isManaged ? { policy: 'builtin:managed-platform' } : {}),
  }
  const place = ['authentication', 'issuers', wishes.issuerId]
  const comments: Comments = [
    [['listen'], 'Callers connect here. TLS ends at a proxy in front of the gateway, or here with listen.tls.'],
    [['health'], '/livez, /readyz, /startupz and /metrics, without authentication: keep this port inside your network.'],
    ...upstream.comments,
    [['cors'], 'The web pages that may call the gateway, besides its own origin.'],
    [place, `The issuer id. It is part of every user id (${wishes.issuerId}:alice): do not rename it.`],
    [[...place, 'audiences'], 'A token must have one of these in aud. The access tokens of your provider decide.'],
    ...issuer.comments.map(([key, text]) => [[...place, key], text] as const),
    [
      ['ownership'],
      store === null
        ? 'The owners are in data/ownership.db beside this file, or in the folder that THREADWARDEN_DATA names.\nstore: postgres://user@host/database shares them between several machines.'
        : 'The owners of threads. Keep this store: without it, no thread has an owner.',
    ],
    [['ownership', 'unknownThread'], ownership.why],
    [['ownership', 'lists'], 'The runtime cannot list threads for certain: the gateway then lists them from its table.'],
    [
      ['policy'],
      'For the managed platform. Subscriptions need upstream.userScoped and identity.assertion:\ndocs/how-to/connect/managed-platform.md',
    ],
  ]
  const header = 'Written by threadwarden init. docs/reference/configuration.md explains every key.'
  return {
    text: yamlOf(tree, comments, header),
    found: [...upstream.found, ...ownership.found, ...issuer.found],
    assumed: [...upstream.assumed, ...issuer.assumed, ...ownership.assumed],
  }
}

/** A path in the configuration, and the comment above its key. */
type Comments = readonly (readonly [path: readonly string[], text: string])[]

interface Described {
  readonly tree: Readonly<Record<string, unknown>>
  readonly comments: Comments
  readonly found: readonly string[]
  readonly assumed: readonly string[]
}

function describeUpstream(wishes: Wishes, found: Found['upstream']): Described {
  const { origin: url, agentId, upstreamHeaders, upstreamCa } = wishes
  const reaching = {
    ...(upstreamCa === null ? {} : { ca: upstreamCa }),
    ...(upstreamHeaders.length === 0
      ? {}
      : { headers: Object.fromEntries(upstreamHeaders.map(([name, file]) => [name, `\${file:${file}}`])) }),
  }
  const secret = 'Sent on every upstream request. Callers cannot override it.'
  if (agentId !== null) {
    const path = wishes.path === '' ? '/' : wishes.path
    const place = ['agents', agentId]
    return {
      tree: { agents: { [agentId]: { url, path, ...reaching } } },
      comments: [
        [place, `Callers find it at /agents/${agentId}. The id is the scope of its threads: do not rename it.`],
        [[...place, 'headers'], secret],
      ],
      found: found === null ? [] : [`a server answers at ${url}`],
      assumed: [`the server is an AG-UI agent that accepts runs at ${path}: agents do not say what they are`],
    }
  }
  const runtime = found?.kind === 'runtime' ? found : null
  const basePath = runtime?.path ?? (wishes.path === '' ? DEFAULT_BASE_PATH : wishes.path)
  return {
    tree: { upstream: { url, basePath: basePath === '' ? '/' : basePath, ...reaching } },
    comments: [
      [['upstream'], 'Only the gateway may be able to reach the runtime.'],
      [['upstream', 'headers'], secret],
    ],
    found: runtime === null ? [] : [runtimeText(runtime, url)],
    assumed: runtime === null ? [`a runtime serves its routes at ${url}${basePath}: it was not asked`] : [],
  }
}

function runtimeText({ facts, version, path }: FoundRuntime, url: string): string {
  const named = version === null ? '' : ` of version ${version}`
  const kind = facts.managed ? 'of the managed platform' : 'with its own thread store'
  return `${url}${path} is a ${facts.transport} runtime${named} ${kind}`
}

interface DescribedIssuer extends Omit<Described, 'comments'> {
  readonly comments: readonly (readonly [key: string, text: string])[]
}

function describeIssuer({ issuer: asked, jwksUri, issuerCa, audiences }: Wishes, found: FoundIssuer | null): DescribedIssuer {
  const issuer = found?.issuer ?? asked
  const algorithms = found?.algorithms ?? DEFAULT_ALGORITHMS
  const endpoint = found?.introspectionEndpoint ?? null
  const opaque = `It also introspects tokens, at ${endpoint}\nIf its access tokens are not JWTs, set introspection: docs/reference/configuration.md#issuers`
  const many = found?.keys === 1 ? '1 key' : `${found?.keys} keys`
  return {
    tree: {
      issuer,
      audiences: audiences.length === 0 ? [DEFAULT_AUDIENCE] : audiences,
      algorithms,
      ...(jwksUri === null ? {} : { jwksUri }),
      ...(issuerCa === null ? {} : { ca: issuerCa }),
    },
    comments: [['issuer', 'Exactly the iss of its tokens.'], ...(endpoint === null ? [] : ([['algorithms', opaque]] as const))],
    found: [
      ...(found === null ? [] : [`${issuer} has ${many}, for ${algorithms.join(', ')}`]),
      ...(issuer === asked ? [] : [`the issuer spells itself ${issuer}, not ${asked}: tokens have its spelling`]),
      ...(endpoint === null ? [] : ['the issuer has an introspection endpoint, for tokens that are not JWTs']),
    ],
    assumed: [
      ...(found === null ? [`${issuer} signs with ${algorithms.join(' or ')}: it was not asked`] : []),
      ...(audiences.length === 0
        ? [`tokens have ${DEFAULT_AUDIENCE} in aud: no issuer publishes that; --audience names another`]
        : []),
    ],
  }
}

interface Ownership extends Pick<Described, 'tree' | 'found' | 'assumed'> {
  readonly why: string
}

const FIRST_RUN = 'claim: the first run on an unowned thread makes the caller its owner.'
const IMPORT = 'docs/how-to/operate/migrate.md'

function chooseOwnership({ unknownThread: wished }: Wishes, found: Found['upstream']): Ownership {
  const runtime = found?.kind === 'runtime' ? found : null
  const lists = runtime?.facts.lists === false ? 'table' : 'auto'
  const rest = runtime === null || runtime.facts.lists === true || runtime.facts.managed ? {} : { lists }
  if (wished !== null) {
    const why = `${wished}: as you wished. docs/how-to/authorize/unknown-threads.md explains the values.`
    return { tree: { unknownThread: wished, ...rest }, found: [], assumed: [], why }
  }
  const { threads = null, canVerify = false } = runtime ?? {}
  // Also where the list is empty: a runtime may show a caller without a user none of its threads.
  if (canVerify) {
    return {
      tree: { unknownThread: 'verify', ...rest },
      found: [`the runtime ${haveThreads(threads)}: only threads without a history can be claimed (unknownThread: verify)`],
      assumed: [`you do not know the owners of existing threads; otherwise import them: ${IMPORT}`],
      why: `verify: a thread can be claimed only if the runtime has no history of it.\nTo give existing threads their owners, import them: ${IMPORT}`,
    }
  }
  if (threads === 0) {
    return {
      tree: { unknownThread: 'claim', ...rest },
      found: ['the runtime lists no thread, so the first run on a thread makes the caller its owner (unknownThread: claim)'],
      assumed: ['no agent keeps threads that the runtime does not list'],
      why: `${FIRST_RUN}\nThe runtime listed no thread when this was written.`,
    }
  }
  // The platform lists only threads of a user, and older runtimes and agents have no list.
  if (threads === null && (runtime === null || runtime.facts.managed || runtime.facts.lists === false)) {
    return {
      tree: { unknownThread: 'claim', ...rest },
      found: [],
      assumed: ['no thread is older than the gateway (unknownThread: claim); otherwise pass --unknown-thread deny, and import'],
      why: `${FIRST_RUN}\nIf threads are older than the gateway, set deny and import them: ${IMPORT}`,
    }
  }
  return {
    tree: { unknownThread: 'deny', ...rest },
    found: [`the runtime ${haveThreads(threads)}, and does not say which ones are new (unknownThread: deny)`],
    assumed: [`you import their owners: ${IMPORT}. Until then the gateway refuses every new thread`],
    why: `deny: only imported threads can be used. Import them: ${IMPORT}`,
  }
}

function haveThreads(threads: number | null): string {
  if (threads === null) return 'did not give its list of threads, and may have threads without an owner'
  if (threads === 0) return 'lists no thread'
  return `has ${threads === 1 ? '1 thread' : `${threads} threads or more`} without an owner`
}

/** Comments cannot end early: the library begins each of their lines with #. */
function yamlOf(tree: object, comments: Comments, header: string): string {
  const document = new Document(tree, { aliasDuplicateObjects: false })
  document.commentBefore = ` ${header}`
  for (const [path, text] of comments) {
    const key = keyAt(document, path)
    if (key !== null) key.commentBefore = text.replaceAll(/^/gm, ' ')
  }
  visit(document, { Seq: (_key, list) => void (list.flow = true) })
  const top = document.contents
  if (isMap(top)) {
    for (const { key } of top.items.slice(1)) if (isScalar(key)) key.spaceBefore = true
  }
  return document.toString({ lineWidth: 0 })
}

function keyAt(document: Document, path: readonly string[]): Node | null {
  const parent = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true)
  if (!isMap(parent)) return null
  const pair = parent.items.find(({ key }) => isScalar(key) && key.value === path.at(-1))
  return pair !== undefined && isScalar(pair.key) ? pair.key : null
}

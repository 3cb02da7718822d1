/** Lists a configuration's upstreams. Owning a thread at one gives no access at another, unless they share a scope. */
import type { StandingFacts, UnknownThread } from '../core/decide/decide.ts'
import type { ListSource } from '../core/wire/table-lists.ts'
import type { UpstreamApi } from '../core/route/all-routes.ts'
import type { UpstreamKind } from '../core/route/transport.ts'
import type { MinVersion } from '../tls/settings.ts'
import type { Config } from './schema.ts'

/** The files and rules of TLS to an upstream, by whichever key they are configured. */
export interface UpstreamTlsFiles {
  readonly ca: string | undefined
  readonly certificateFile: string | undefined
  readonly keyFile: string | undefined
  readonly minVersion: MinVersion
  readonly serverName: string | undefined
}

export interface Mount {
  /** Its unique key in the configuration, or `''` for `upstream`. */
  readonly key: string
  /** Its key, or that of the upstream whose threads it shares. */
  readonly scope: string
  readonly saysScope: boolean
  readonly place: readonly string[]
  readonly api: UpstreamApi
  /** The id of a self-hosted agent; null for all other upstreams. */
  readonly agentId: string | null
  readonly url: string
  readonly tls: UpstreamTlsFiles
  /** False for a CA that is configured by the older key `ca`. */
  readonly isCaInTls: boolean
  /** The path for callers: `''` or `/a/b`. */
  readonly publicPath: string
  /** The path of the upstream's routes, `''` or `/a/b`; for an agent, the path that runs are POSTed to. */
  readonly basePath: string
  readonly transport: UpstreamKind | 'auto'
  readonly userScoped: boolean
  readonly forwardAuthorization: boolean
  /** Names of credential cookies. */
  readonly forwardCookies: readonly string[]
  readonly headers: Readonly<Record<string, string>>
  /** In milliseconds; 0 for none. */
  readonly timeouts: { readonly connect: number; readonly headers: number; readonly body: number }
  readonly unknownThread: UnknownThread
  readonly lists: ListSource
  /** The `aud` of its assertions, if not identity.assertion.audience. */
  readonly assertionAudience: string | undefined
}

/** The value of `scope` for the upstream without a key. */
export const UPSTREAM = 'upstream'

export function scopeName(key: string): string {
  return key === '' ? UPSTREAM : key
}

export function mountsOf({ upstream, upstreams, agents, ownership, identity }: Config): readonly [Mount, ...Mount[]] {
  const { unknownThread, lists } = ownership
  const keys = [...Object.keys(upstreams), ...Object.keys(agents)]
  // With several upstreams, one could show another the assertions that it received.
  const isAlone = keys.length + (upstream === undefined ? 0 : 1) === 1
  const audienceOf = (key: string): string | undefined =>
    identity.assertion === undefined || isAlone || key === '' ? undefined : `${identity.assertion.audience}/${key}`
  const scopeOf = (key: string, said: string | undefined): Pick<Mount, 'scope' | 'saysScope'> => ({
    scope: said === undefined ? key : said === UPSTREAM && !keys.includes(UPSTREAM) ? '' : said,
    saysScope: said !== undefined,
  })
  const nothingSaid = { scope: undefined, unknownThread: undefined, lists: undefined, assertionAudience: undefined }
  const runtimes = [
    ...(upstream === undefined ? [] : [{ key: '', place: ['upstream'], ...nothingSaid, ...upstream, kind: 'runtime' as const }]),
    ...Object.entries(upstreams).map(([key, one]) => ({ key, place: ['upstreams', key], ...one })),
  ].map((one): Mount => ({
    ...one,
    ...scopeOf(one.key, one.scope),
    ...pathsOf(one.key, one),
    agentId: null,
    tls: tlsOf(one),
    isCaInTls: one.ca === undefined,
    unknownThread: one.unknownThread ?? unknownThread,
    lists: one.lists ?? lists,
    assertionAudience: one.assertionAudience ?? audienceOf(one.key),
  }))
  const endpoints = Object.entries(agents).map(([key, { path, ...one }]): Mount => ({
    ...one,
    ...scopeOf(key, one.scope),
    key,
    place: ['agents', key],
    api: 'agent',
    agentId: key,
    tls: tlsOf(one),
    isCaInTls: one.ca === undefined,
    transport: 'endpoint',
    userScoped: false,
    basePath: path,
    publicPath: one.publicPath ?? `/agents/${key}`,
    unknownThread: one.unknownThread ?? unknownThread,
    lists: 'upstream',
    assertionAudience: one.assertionAudience ?? audienceOf(key),
  }))
  const [first, ...more] = [...runtimes, ...endpoints]
  if (first === undefined) throw new Error('a configuration without any upstream was taken for a valid one')
  return [first, ...more]
}

/** A LangGraph server serves its routes at the root, and callers find them below the key of the upstream. */
function pathsOf(
  key: string,
  { kind, basePath, publicPath, transport }: Pick<Config['upstreams'][string], 'kind' | 'basePath' | 'publicPath' | 'transport'>,
): Pick<Mount, 'api' | 'basePath' | 'publicPath' | 'transport'> {
  if (kind === 'langgraph') {
    return { api: 'langgraph', transport: 'langgraph', basePath: basePath ?? '', publicPath: publicPath ?? `/${key}` }
  }
  return { api: 'runtime', transport, basePath: basePath ?? '', publicPath: publicPath ?? basePath ?? '' }
}

function tlsOf({ ca, tls }: Pick<NonNullable<Config['upstream']>, 'ca' | 'tls'>): UpstreamTlsFiles {
  const { certificateFile, keyFile, minVersion = 'TLSv1.2', serverName } = tls ?? {}
  return { ca: ca ?? tls?.ca, certificateFile, keyFile, minVersion, serverName }
}

export function scopesIn(config: Config): readonly string[] {
  return [...new Set(mountsOf(config).map(({ scope }) => scope))]
}

export function standingFacts({ userScoped, unknownThread }: Mount, { enforcement }: Config): StandingFacts {
  return { userScoped, unknownThread, enforcement }
}

export function serverHeaders({ headers }: Pick<Mount, 'headers'>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

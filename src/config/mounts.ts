/**
 * The upstreams of a configuration side by side: each is found under a public path, and its threads are a scope of their own
 * in the ownership table, so that owning a thread at one opens nothing at another.
 */
import type { StandingFacts, UnknownThread } from '../core/decide/decide.ts'
import type { ListSource } from '../core/wire/table-lists.ts'
import type { UpstreamKind } from '../core/route/transport.ts'
import type { Config } from './schema.ts'

/** One upstream, with all that holds for it. */
export interface Mount {
  /** What it is called in the configuration: its key, or `''` for `upstream`. No two have the same. */
  readonly key: string
  /** Its scope in the ownership table: its key, or that of the upstream whose threads it shares. */
  readonly scope: string
  /** True where the configuration says which scope it is. */
  readonly saysScope: boolean
  readonly place: readonly string[]
  /** What a self-hosted agent is called; null for a runtime. */
  readonly agentId: string | null
  readonly url: string
  readonly ca: string | undefined
  /** Where callers find it: `''` or `/a/b`. */
  readonly publicPath: string
  /** Where its own routes are, `''` or `/a/b`; of an agent the path that runs are POSTed to. */
  readonly basePath: string
  readonly transport: UpstreamKind | 'auto'
  readonly userScoped: boolean
  readonly forwardAuthorization: boolean
  readonly headers: Readonly<Record<string, string>>
  /** In milliseconds; 0 for none. */
  readonly timeouts: { readonly connect: number; readonly headers: number; readonly body: number }
  readonly unknownThread: UnknownThread
  readonly lists: ListSource
  /** The `aud` of assertions that go there, where it is not identity.assertion.audience. */
  readonly assertionAudience: string | undefined
}

/** What `scope` calls the upstream without a key. */
export const UPSTREAM = 'upstream'

/** What the configuration calls the scope of an upstream with this key. */
export function scopeName(key: string): string {
  return key === '' ? UPSTREAM : key
}

/** The upstreams of a configuration: `upstream`, the further ones, and the agents, in the order in which they are written. */
export function mountsOf({ upstream, upstreams, agents, ownership, identity }: Config): readonly [Mount, ...Mount[]] {
  const { unknownThread, lists } = ownership
  const keys = [...Object.keys(upstreams), ...Object.keys(agents)]
  // Beside another one, an upstream could show the other the assertions that it got.
  const isAlone = keys.length + (upstream === undefined ? 0 : 1) === 1
  const audienceOf = (key: string): string | undefined =>
    identity.assertion === undefined || isAlone || key === '' ? undefined : `${identity.assertion.audience}/${key}`
  const scopeOf = (key: string, said: string | undefined): Pick<Mount, 'scope' | 'saysScope'> => ({
    scope: said === undefined ? key : said === UPSTREAM && !keys.includes(UPSTREAM) ? '' : said,
    saysScope: said !== undefined,
  })
  const runtimes = [
    ...(upstream === undefined ? [] : [{ key: '', place: ['upstream'], scope: undefined, ...upstream }]),
    ...Object.entries(upstreams).map(([key, one]) => ({ key, place: ['upstreams', key], ...one })),
  ].map((one): Mount => ({
    agentId: null,
    unknownThread,
    lists,
    assertionAudience: audienceOf(one.key),
    ...defined(one),
    ...scopeOf(one.key, one.scope),
    ca: one.ca,
    publicPath: one.publicPath ?? one.basePath,
  }))
  const endpoints = Object.entries(agents).map(([key, { path, ...one }]): Mount => ({
    key,
    place: ['agents', key],
    agentId: key,
    transport: 'endpoint',
    userScoped: false,
    unknownThread,
    lists: 'upstream',
    assertionAudience: audienceOf(key),
    ...defined(one),
    ...scopeOf(key, one.scope),
    ca: one.ca,
    basePath: path,
    publicPath: one.publicPath ?? `/agents/${key}`,
  }))
  const [first, ...more] = [...runtimes, ...endpoints]
  if (first === undefined) throw new Error('a configuration without any upstream was taken for a valid one')
  return [first, ...more]
}

/** The scopes of the upstreams of a configuration. */
export function scopesIn(config: Config): readonly string[] {
  return [...new Set(mountsOf(config).map(({ scope }) => scope))]
}

/** What is known of requests to an upstream, whatever they ask. */
export function standingFacts({ userScoped, unknownThread }: Mount, { enforcement }: Config): StandingFacts {
  return { userScoped, unknownThread, enforcement }
}

/** The headers that the operator configured for an upstream, by name in lower case. */
export function serverHeaders({ headers }: Pick<Mount, 'headers'>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

/** Without the keys that hold nothing, which would otherwise hide what holds in their place. */
function defined<Value extends object>(value: Value): { [Key in keyof Value]: Exclude<Value[Key], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as never
}

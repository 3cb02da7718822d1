/** What a check examines, and what earlier checks found out about it. */
import type { Dispatcher } from 'undici'
import type { Mount } from '../../config/mounts.ts'
import type { Config } from '../../config/schema.ts'
import type { RuntimeFacts } from '../../core/route/transport.ts'
import type { ThreadLookup } from '../../store/port/lookup.ts'
import type { Sources } from '../../document/sources.ts'
import type { Upstream } from '../../http/upstream/upstream.ts'
import type { Result } from './finding.ts'

export interface Machine {
  /** The content of /proc/self/mountinfo. */
  readonly mounts: string
  readonly addresses: readonly string[]
}

export interface Wishes {
  /** The time limit of one check, in milliseconds. */
  readonly timeout: number
  /** Null for no token. */
  readonly token: string | null
  /** The gateway's address for clients, with its path and without a trailing slash; null for the address of its listener. */
  readonly url: string | null
  /** The agent to run once and the message for it; null for no run. */
  readonly run: { readonly agentId: string; readonly message: string } | null
  /** Milliseconds, in whole seconds, for which a stream without events has to pass the proxies; 0 for no such check. */
  readonly quiet: number
}

/** What earlier checks found out about an upstream and the ownership table. Null means that it could not be determined. */
export interface Known {
  /** True if the upstream has answered a request. */
  isReached: boolean
  facts: RuntimeFacts | null
  version: string | null
  agents: readonly string[]
  histories: boolean | null
  threadIds: ReadonlySet<string> | null
  /** The threads that were compared with the table so far. */
  comparison: Comparison | null
  /** One for all upstreams. */
  readonly table: KnownTable
}

export interface KnownTable {
  /** Those with rows in the ownership table. */
  scopes: readonly string[] | null
  /** Opens the table for look-ups. */
  lookUp: (() => Promise<ThreadLookup>) | null
}

/** The upstream's list of threads, compared with the ownership table. */
export interface Comparison {
  listed: number
  /** Neither a row nor an observation: under `claim` the first user to run one owns it. */
  readonly unowned: Sample
  /** No row, but one user ran it under `enforcement: observe`; no other user can claim it. */
  readonly observed: Sample
  /** No row, and several users ran it under `enforcement: observe`: no user can claim it. */
  readonly disputed: Sample
  /** The id is none for the gateway, which refuses it with 400. */
  readonly unreachable: Sample
  /** Why the rest was not compared, or null. */
  stopped: string | null
}

export interface Sample {
  count: number
  readonly examples: string[]
}

export interface Subject {
  readonly config: Config
  readonly sources: Sources
  /** Identifies the configuration; a running gateway tells the one that it uses. */
  readonly digest: string
  readonly mount: Mount
  readonly wishes: Wishes
  readonly machine: Machine
  readonly upstream: Upstream
  /** The configured headers of the upstream, as the gateway's own requests carry them. */
  readonly headers: Readonly<Record<string, string>>
  /** For requests to the listener on this machine or to `wishes.url`; undefined where Node's own connections do. */
  readonly listener: Dispatcher | undefined
  readonly clock: () => number
  readonly known: Known
  readonly before: readonly Subject[]
}

export function settingOf({ mount }: Pick<Subject, 'mount'>, key: string): string {
  return [...mount.place, key].join('.')
}

export type Results = Result | readonly Result[]

export interface Check {
  /** As in its findings, which scripts rely on. */
  readonly name: string
  /** The finding for a timeout; by default the result is unknown. */
  readonly late?: (subject: Subject) => Results
  /** The shortest time limit in milliseconds, whatever the operator chose. */
  readonly atLeast?: number | ((subject: Subject) => number)
  readonly run: (subject: Subject, signal: AbortSignal) => Results | Promise<Results>
}

/** The reason to skip a check that needs to know what kind of upstream this is. */
export const UNSHOWN = 'the upstream did not show what kind of runtime it is'

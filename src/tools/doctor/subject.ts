/** What is examined, with what earlier checks have found out about it. */
import type { Mount } from '../../config/mounts.ts'
import type { Config } from '../../config/schema.ts'
import type { RuntimeFacts } from '../../core/route/transport.ts'
import type { Upstream } from '../../http/upstream/upstream.ts'
import type { Finding } from './finding.ts'

/** What is looked at of the machine that the doctor runs on. */
export interface Machine {
  /** Its mounts, as /proc/self/mountinfo has them. */
  readonly mounts: string
  /** The addresses by which others reach it. */
  readonly addresses: readonly string[]
}

export interface Wishes {
  /** Milliseconds that one check may take. */
  readonly timeout: number
  /** A caller's token; null for none. */
  readonly token: string | null
  /** The gateway as clients reach it, with its path and without a trailing slash; null for where it listens. */
  readonly url: string | null
  /** The agent to run once and what to say to it; null for no run. */
  readonly run: { readonly agentId: string; readonly message: string } | null
}

/** What earlier checks know of an upstream. Null is: nobody could tell. */
export interface Known {
  facts: RuntimeFacts | null
  version: string | null
  agents: readonly string[]
  /** Whether the upstream has the routes of thread histories. */
  histories: boolean | null
  /** The ids of the threads that it lists. */
  threadIds: ReadonlySet<string> | null
}

/** What is known of the ownership table: the scopes of which it has rows; null where nobody could tell. */
export interface KnownTable {
  scopes: readonly string[] | null
}

export interface Subject {
  readonly config: Config
  /** The upstream that is looked at. */
  readonly mount: Mount
  readonly wishes: Wishes
  readonly machine: Machine
  readonly upstream: Upstream
  /** The server's own headers, as the gateway's own questions carry them. */
  readonly headers: Readonly<Record<string, string>>
  readonly clock: () => number
  readonly known: Known
  readonly table: KnownTable
  /** The upstreams that stand before this one in the configuration. */
  readonly before: readonly Subject[]
}

/** Where a key of the upstream stands in the configuration: `upstreams.legal.url`. */
export function settingOf({ mount }: Pick<Subject, 'mount'>, key: string): string {
  return [...mount.place, key].join('.')
}

export interface Check {
  readonly name: string
  /** What it means if the time is up; by default that nothing is known. */
  readonly late?: (subject: Subject) => Finding
  /** Milliseconds that it may take at least, whatever is wished. */
  readonly atLeast?: number
  readonly run: (subject: Subject, signal: AbortSignal) => Promise<readonly Finding[]>
}

/** A question about the upstream that can't be put before it has shown what it is. */
export const UNSHOWN = 'the upstream has not shown what it is'

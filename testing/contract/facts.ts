/** What a runtime takes and gives, as far as a gateway has to know it. */

export interface RouteFacts {
  readonly method: string
  /** Below the base path; ids as `:agentId` and the like. */
  readonly path: string
  /** Whether `resource/request` carries it. */
  readonly isTunnelled: boolean
  /** Top-level keys of a JSON body that the handler reads. */
  readonly bodyKeys: readonly string[]
  /** Whether it also reads keys that it does not name. */
  readonly readsOtherKeys: boolean
}

export interface HeaderFacts {
  /** Whose header reaches the agent, if both have it. */
  readonly winner: 'agent' | 'caller'
  /** Names of callers' headers that reach an agent; `x-*` for all with that prefix but those of `withheld`. */
  readonly forwarded: readonly string[]
  readonly withheld: readonly string[]
}

export interface RuntimeContract {
  readonly package: string
  readonly version: string
  /** The version of `@ag-ui/core` that it depends on. */
  readonly agUi: string
  readonly routes: readonly RouteFacts[]
  /** Names of routes in its source that no path and no envelope led to. */
  readonly unreached: readonly string[]
  readonly envelopeMethods: readonly string[]
  readonly envelopeKeys: readonly string[]
  /** Fields of `/info`, as paths; `*` for the name of an agent. */
  readonly infoFields: readonly string[]
  readonly headers: HeaderFacts
}

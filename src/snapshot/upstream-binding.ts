/** Assembles the parts that the gate needs to serve one upstream. */
import type { Config } from '../config/schema.ts'
import { mountsOf, standingFacts, type Mount } from '../config/mounts.ts'
import type { UpstreamHandle } from './upstream-handle.ts'
import { tableUse } from '../core/wire/table-lists.ts'
import type { Access } from '../http/pipeline/access.ts'
import { makeClaims } from '../http/pipeline/claims.ts'
import { makeCursorSeal } from '../http/lists/cursor.ts'
import { makeForwarder } from '../http/upstream/forward.ts'
import type { UpstreamBinding } from '../http/pipeline/gate.ts'
import { makeGrants } from '../http/admin/grants.ts'
import { makeAskHistory } from '../http/pipeline/history.ts'
import type { Identity } from '../http/pipeline/identity.ts'
import type { OpenAnswers } from '../http/upstream/open-answers.ts'
import type { OwnerRecords } from '../http/pipeline/owner-records.ts'
import { makeRewriter } from '../http/lists/rewriter.ts'
import { makeTableChange } from '../http/lists/table-changes.ts'
import { makeTableList } from '../http/lists/table-list.ts'
import { makeThreadList } from '../http/lists/thread-list.ts'
import type { Limiter } from '../limits/port.ts'
import type { Logger } from '../observe/log.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { Policy } from '../policy/policy.ts'
import type { Store } from '../store/port.ts'

export interface UpstreamBindingParts {
  readonly config: Config
  readonly policy: Policy
  readonly identity: Identity
  readonly records: OwnerRecords
  readonly store: Store
  readonly secret: Uint8Array
  readonly answers: OpenAnswers
  readonly limiter: Limiter
  readonly metrics: Metrics
  readonly log: Logger
  readonly clock: () => number
  readonly access: Access
  readonly successor: UpstreamBinding['successor']
}

export function bindUpstream(mount: Mount, connection: UpstreamHandle, parts: UpstreamBindingParts): UpstreamBinding {
  const { scope, basePath } = mount
  const { config, policy, records, store, answers, limiter, access, metrics, log, clock } = parts
  const { upstream, probe, startupChecks } = connection
  const { rules } = policy
  const facts = standingFacts(mount, config)
  const observing = config.enforcement === 'observe'
  const headerRules = {
    server: connection.headers,
    forward: config.forwardHeaders.map((name) => name.toLowerCase()),
    forwardAuthorization: mount.forwardAuthorization,
  }
  const identity: Pick<Identity, 'headers'> = {
    headers: (principal, descriptor) => parts.identity.headers(principal, descriptor, mount),
  }
  const claims = makeClaims(store, scope, clock, metrics, log, observing ? store : null)
  const forwarder = makeForwarder({
    upstream,
    basePath,
    headerRules,
    identity,
    transport: probe,
    claims,
    answers,
    answerRules: { ...config.streams, sendTimeout: config.limits.sendTimeout },
    access,
    metrics,
    log,
  })
  const seal = makeCursorSeal(parts.secret, mount.key)
  return {
    key: mount.key,
    scope,
    sharesScope: mountsOf(config).some((other) => other.scope === scope && other.key !== mount.key),
    publicPath: mount.publicPath,
    agentId: mount.agentId,
    facts,
    transport: probe,
    headerRules,
    identity,
    forwarder,
    rewriter: makeRewriter({
      rules,
      facts,
      forwarder,
      list: makeThreadList({ records, scope, rules, facts, forwarder, seal, access }),
      tableList: makeTableList({ store, records, scope, rules, facts, seal, access }),
      tableChange: makeTableChange({ store, scope, forwarder, claims, clock }),
      tableUse: (upstreamIs) => tableUse(mount.lists, config.enforcement, upstreamIs),
    }),
    grants: makeGrants({
      store,
      records,
      rules,
      facts,
      scope,
      issuers: Object.keys(config.authentication.issuers),
      limiter,
      limit: config.limits.grants,
      log,
      clock,
    }),
    access,
    successor: parts.successor,
    askHistory: makeAskHistory(upstream, basePath, () => probe.suspect()),
    onHistoryUntold: () => {
      if (!observing) startupChecks.historyUntold()
    },
  }
}

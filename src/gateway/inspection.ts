/** What operators see of a running gateway through the admin API, joined from the processes that serve requests. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { RecentDecisions } from '../audit/recent.ts'
import { readAuditLine } from '../audit/replay.ts'
import type { Issuer } from '../auth/issuer.ts'
import type { Json, JsonObject } from '../core/json/read.ts'
import type { Decision, Explained, MinuteOfDecisions, ActivePolicy, Status, Stream } from '../http/admin/schemas.ts'
import type { ExplainQuestion, Inspection } from '../http/admin/inspection.ts'
import type { Readiness } from '../http/listeners/readiness.ts'
import { singleFlight } from '../http/listeners/single-flight.ts'
import { makeOwnerRecords } from '../http/pipeline/authorization.ts'
import type { OpenAnswers } from '../http/upstream/open-answers.ts'
import { packageVersion } from '../observe/version.ts'
import { unknownIssuer } from '../operator/revocation-form.ts'
import type { Checked } from '../snapshot/load.ts'
import type { LastReload } from '../snapshot/reload.ts'
import { openIdentity, type ConfigSnapshot } from '../snapshot/snapshot.ts'
import type { AccessStore } from '../store/port/access.ts'
import type { StoreState } from '../store/port/state.ts'
import { Sources } from '../document/sources.ts'
import type { TokenCounters } from '../limits/port.ts'
import { mountsOf } from '../config/mounts.ts'
import { budgetUse } from './budget-use.ts'

/** Of one process, by the part that is asked for. */
export interface Activity {
  readonly decisions: readonly Decision[]
  readonly minutes: readonly MinuteOfDecisions[]
  readonly streams: readonly Stream[]
  readonly sources: Pick<Status, 'issuers' | 'upstreams'>
}

export function activityOf(
  part: keyof Activity,
  recent: RecentDecisions,
  answers: OpenAnswers,
  snapshot: ConfigSnapshot,
): Partial<Activity> {
  switch (part) {
    case 'decisions':
      return { decisions: recent.lines().map((line) => ({ ...line })) }
    case 'minutes':
      return { minutes: recent.minutes().map(({ minute, ...counts }) => ({ minute: timeText(minute), ...counts })) }
    case 'streams':
      return { streams: answers.streams().map(shownStream) }
    case 'sources':
      return {
        sources: {
          issuers: snapshot.issuers.map(issuerStatus),
          upstreams: mountsOf(snapshot.prepared.config).map(({ key, publicPath }) => ({
            key,
            publicPath: publicPath === '' ? '/' : publicPath,
            transport: snapshot.handles.get(key)?.probe.facts?.transport ?? null,
          })),
        },
      }
  }
}

function shownStream({ owner, openedAt }: ReturnType<OpenAnswers['streams']>[number]): Stream {
  return {
    requestId: owner.requestId,
    openedAt: timeText(openedAt),
    user: owner.userId,
    route: owner.permit?.descriptor.route.id ?? 'none',
    agent: owner.permit?.descriptor.ids.agentId ?? null,
    thread: owner.permit?.descriptor.ids.threadId ?? null,
    expiresAt: owner.credential?.expiresAt === undefined ? null : timeText(owner.credential.expiresAt),
  }
}

function issuerStatus({ key, config, keys }: Issuer): Status['issuers'][number] {
  const fetched = keys.known
  return {
    key,
    issuer: config.issuer,
    state: keys.stale() ? 'stale' : keys.ready() ? 'usable' : 'missing',
    fetchedAt: fetched === null || fetched.keys === null ? null : timeText(fetched.fetchedAt),
    keys: (fetched?.keys ?? []).flatMap(({ kid }) => (kid === undefined ? [] : [kid])),
  }
}

export interface InspectionParts {
  /** Of each process that serves requests. */
  readonly activities: (part: keyof Activity) => Promise<readonly Partial<Activity>[]>
  /** True if one of the processes had such a stream. */
  readonly endStream: (requestId: string) => Promise<boolean>
  readonly current: () => { readonly number: number; readonly prepared: Checked }
  readonly readiness: Pick<Readiness, 'pending' | 'notes'>
  readonly lastReload: () => LastReload | null
  readonly store: AccessStore & Pick<StoreState, 'fault'>
  readonly counters: Pick<TokenCounters, 'spending'>
  readonly workers: number
  /** Milliseconds since the epoch. */
  readonly clock: () => number
}

export function makeInspection(parts: InspectionParts): Inspection {
  const { activities, current, readiness, clock } = parts
  const startedAt = timeText(clock())
  const fault = singleFlight(() => parts.store.fault())
  const storeFault = (): Promise<string | null> =>
    Promise.race([fault(), sleep(STORE_MS, 'the check of the store takes longer than 2 s', { ref: false })])
  const decisions: Inspection['decisions'] = async () =>
    (await activities('decisions'))
      .flatMap((one) => one.decisions ?? [])
      .toSorted((one, other) => (one.time < other.time ? 1 : one.time > other.time ? -1 : 0))
  return {
    budgets: (question) => budgetUse(current().prepared, parts.counters, question, clock()),
    async status() {
      const { number, prepared } = current()
      const { config, policy } = prepared
      const known = (await activities('sources')).flatMap(({ sources }) => sources ?? [])
      const last = parts.lastReload()
      const store = await storeFault()
      const pending = { ...Object.fromEntries(readiness.pending()), ...(store === null ? {} : { store }) }
      return {
        version: packageVersion(),
        startedAt,
        workers: parts.workers,
        ready: Object.keys(pending).length === 0,
        pending,
        notes: Object.fromEntries(readiness.notes()),
        configuration: {
          digest: prepared.digest,
          generation: number,
          enforcement: config.enforcement,
          policy: { file: policy.file, hash: policy.hash },
        },
        lastReload: last === null ? null : { ...last, at: timeText(last.at) },
        issuers: joinedBy(
          'key',
          known.map(({ issuers }) => issuers),
          worseIssuer,
        ),
        upstreams: joinedBy(
          'key',
          known.map(({ upstreams }) => upstreams),
          (one, other) => (one.transport === null ? one : other),
        ),
        certificates: prepared.certificates.map(({ name, until }) => ({ name, expiresAt: timeText(until) })),
      }
    },
    decisions,
    minutes: async () => joinedMinutes((await activities('minutes')).flatMap((one) => one.minutes ?? [])),
    streams: async () =>
      (await activities('streams'))
        .flatMap((one) => one.streams ?? [])
        .toSorted((one, other) => (one.openedAt < other.openedAt ? -1 : 1)),
    endStream: parts.endStream,
    policy: () => activePolicy(current().prepared),
    configuration() {
      const { number, prepared } = current()
      return { digest: prepared.digest, generation: number, written: { ...(prepared.written as object) } }
    },
    async explain(question) {
      const { prepared } = current()
      if (question.requestId === undefined) return explained(question, prepared, parts)
      const line = (await decisions()).find(({ requestId }) => requestId === question.requestId)
      // As a line that was written to a file.
      return line === undefined ? null : explainedLine(JSON.parse(JSON.stringify(line)) as Json, prepared)
    },
  }
}

/** How long an operator waits for the check of the store, in milliseconds. */
const STORE_MS = 2000

function timeText(time: number): string {
  return new Date(time).toISOString()
}

function joinedBy<Key extends string, One extends Readonly<Record<Key, string>>>(
  key: Key,
  lists: readonly (readonly One[])[],
  join: (one: One, other: One) => One,
): readonly One[] {
  const found = new Map<string, One>()
  for (const one of lists.flat()) {
    const known = found.get(one[key])
    found.set(one[key], known === undefined ? one : join(known, one))
  }
  return [...found.values()]
}

const STATES = ['usable', 'stale', 'missing'] as const

function worseIssuer(one: Status['issuers'][number], other: Status['issuers'][number]): Status['issuers'][number] {
  return STATES.indexOf(one.state) >= STATES.indexOf(other.state) ? one : other
}

function joinedMinutes(all: readonly MinuteOfDecisions[]): readonly MinuteOfDecisions[] {
  const joined = joinedBy('minute', [all], (one, other) => {
    const reasons = new Set([...Object.keys(one.refused), ...Object.keys(other.refused)])
    const refused: Record<string, number> = {}
    for (const reason of reasons) refused[reason] = (one.refused[reason] ?? 0) + (other.refused[reason] ?? 0)
    return { ...one, permitted: one.permitted + other.permitted, refused }
  })
  return joined.toSorted((one, other) => (one.minute < other.minute ? 1 : -1))
}

// The simulation is loaded when an operator asks: it is no part of serving requests.

async function activePolicy({ config, policy }: Checked): Promise<ActivePolicy> {
  const { routesOf } = await import('../tools/simulate/routes.ts')
  return {
    file: policy.file,
    hash: policy.hash,
    routes: routesOf(config, policy).map(({ upstream, route, method, path, right, closed, access }) => ({
      upstream,
      route,
      method,
      path,
      hasThread: right !== null,
      closed,
      access: access.map((one) => ({ ...one, rule: withLine(one.rule) })),
    })),
  }
}

async function explainedLine(line: Json, { policy }: Checked): Promise<Explained | { readonly fault: string }> {
  const recorded = readAuditLine(line)
  if ('fault' in recorded) return { fault: `The line ${recorded.fault}` }
  const [{ replay }, { replayedData }] = await Promise.all([
    import('../tools/simulate/replay.ts'),
    import('../tools/simulate/replayed.ts'),
  ])
  const { then, same, now, route, scope, principal, facts, rules, notes } = replayedData(
    replay(recorded, policy),
    recorded,
    policy,
  )
  return {
    then,
    same,
    now: now === null ? null : { ...now, rule: now.rule === null ? null : withLine(now.rule) },
    request: { scope },
    route,
    principal,
    facts: { ...facts },
    policy: { file: policy.file, hash: policy.hash },
    rules: rules.map(withLine),
    upstream: null,
    notes: [...notes],
  }
}

async function explained(
  { line, method = '', target = '', claims, issuer }: ExplainQuestion,
  prepared: Checked,
  { store, clock }: InspectionParts,
): Promise<Explained | { readonly fault: string }> {
  if (line !== undefined) return explainedLine(line as Json, prepared)
  const { config, policy } = prepared
  const issuers = Object.keys(config.authentication.issuers)
  if (issuer !== undefined && !issuers.includes(issuer)) {
    return { fault: unknownIssuer(issuers) }
  }
  const [{ explain }, { explanationData }] = await Promise.all([
    import('../tools/simulate/explain.ts'),
    import('../tools/simulate/explanation.ts'),
  ])
  const only = issuers.length === 1 && claims?.['iss'] === undefined ? issuers[0] : undefined
  const presented =
    claims === undefined
      ? ({ kind: 'nothing' } as const)
      : ({ kind: 'claims', claims: claims as JsonObject, issuer: issuer ?? only } as const)
  if (presented.kind === 'claims' && presented.issuer === undefined && presented.claims['iss'] === undefined) {
    return { fault: `The claims have no iss: name their issuer (${issuers.join(', ')}).` }
  }
  const question = { method, target, presented, body: new Uint8Array(), record: null, upstreamHistory: 'none' } as const
  const surroundings = {
    config,
    policy,
    identity: openIdentity(config.identity, new Sources(), clock),
    clock,
    records: makeOwnerRecords(store, config.enforcement),
  }
  const found = explanationData(await explain(question, surroundings), question, config, policy)
  const { outcome, status, code, reason, rule, request, route, principal, facts, rules, upstream, notes } = found
  return {
    then: null,
    same: null,
    now: { outcome, status, code, reason, rule: rule === null ? null : withLine(rule) },
    request,
    route,
    principal,
    facts: facts === null ? null : { ...facts },
    policy: found.policy,
    rules: rules.map(withLine),
    upstream: upstream === null ? null : { ...upstream },
    notes: [...notes],
  }
}

function withLine<One extends { readonly line?: number }>(one: One): Omit<One, 'line'> & { readonly line: number | null } {
  return { ...one, line: one.line ?? null }
}

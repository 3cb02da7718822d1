/** Runs the checks in order, each with a time limit. A check that fails or hangs gives a finding, and the others go on. */
import { Agent } from 'undici'
import { mountsOf, serverHeaders, type Mount } from '../../config/mounts.ts'
import { storeOf } from '../../config/store-place.ts'
import type { UpstreamApi } from '../../core/route/all-routes.ts'
import type { Sources } from '../../document/sources.ts'
import { upstreamTls } from '../../tls/material.ts'
import { openUpstream, type Upstream } from '../../http/upstream/upstream.ts'
import { SEPARATION_CHECK, EXPOSURE_CHECKS, SERVER_EXPOSURE_CHECKS } from './upstream-exposure.ts'
import { codeOf, NoAnswer } from './requests.ts'
import { makeRedactor, notChecked, seconds, type Finding } from './finding.ts'
import { BODIES_CHECK, CALLER_CHECK, HEADERS_CHECK, PREFLIGHT_CHECK, READY_CHECK, STRANGER_CHECK } from './gateway.ts'
import { ISSUER_CHECKS } from './issuers.ts'
import { CERTIFICATE_CHECK, listenerDispatcher } from './listener.ts'
import { RUN_CHECK, STREAMS_CHECK } from './live-run.ts'
import { QUIET_CHECK } from './quiet-stream.ts'
import { SERVER_CHECKS } from './langgraph.ts'
import { STORE_CHECKS } from './store.ts'
import type { Check, Machine, Results, Subject, Wishes } from './subject.ts'
import { THREAD_CHECKS } from './threads.ts'
import { ROUTES_CHECK } from './routes.ts'
import { AGENT_CHECK, SERVER_REACHABLE, UPSTREAM_CHECKS } from './upstream.ts'

const FIRST: readonly Check[] = [...STORE_CHECKS, ...ISSUER_CHECKS]

/** Checks of a runtime, in this order: later checks use what earlier ones found out. */
const RUNTIME_CHECKS: readonly Check[] = [...UPSTREAM_CHECKS, ROUTES_CHECK, ...EXPOSURE_CHECKS, ...THREAD_CHECKS, STREAMS_CHECK]

const SERVER_CHECKS_IN_ORDER: readonly Check[] = [SERVER_REACHABLE, ...SERVER_CHECKS, ...SERVER_EXPOSURE_CHECKS, ...THREAD_CHECKS]

const CHECKS_OF: Readonly<Record<UpstreamApi, readonly Check[]>> = {
  runtime: RUNTIME_CHECKS,
  agent: [AGENT_CHECK],
  langgraph: SERVER_CHECKS_IN_ORDER,
}

interface Step {
  readonly check: Check
  readonly subject: Subject
  readonly key: string
}

/** @param clock milliseconds since the epoch */
export async function examine(
  { config, sources, digest }: Pick<Subject, 'config' | 'sources' | 'digest'>,
  wishes: Wishes,
  machine: Machine,
  onCheck: (name: string, limit: number) => void = () => {},
  clock: () => number = Date.now,
): Promise<readonly Finding[]> {
  const table = { scopes: null, lookUp: null }
  const subjects: Subject[] = []
  // HTTP/2 has other limits, and a proxy that closes the connection for one leaves no status to report.
  const listener = wishes.url === null ? listenerDispatcher(config, sources) : new Agent({ allowH2: false })
  for (const mount of mountsOf(config)) {
    subjects.push({
      config,
      sources,
      digest,
      mount,
      wishes,
      machine,
      upstream: upstreamOf(mount, sources, wishes),
      headers: { 'accept-encoding': 'identity', ...serverHeaders(mount) },
      listener,
      clock,
      known: {
        isReached: false,
        facts: null,
        version: null,
        agents: [],
        histories: null,
        threadIds: null,
        comparison: null,
        table,
      },
      before: [...subjects],
    })
  }
  const store = storeOf(config.ownership)
  const password = store.kind === 'postgres' ? store.settings.password : null
  const headers = subjects.flatMap(({ mount }) => Object.values(mount.headers))
  const redact = makeRedactor([...headers, ...[wishes.token, password].filter((secret) => secret !== null)])
  const findings: Finding[] = []
  try {
    for (const step of stepsOf(subjects)) {
      onCheck(named(step.check.name, step), limitOf(step))
      const results = [await within(step.check, step.subject)].flat()
      for (const { check = step.check.name, ...rest } of results) findings.push({ check: named(check, step), ...rest })
    }
  } finally {
    await Promise.all([...subjects.map(({ upstream }) => upstream.close()), listener?.destroy()])
  }
  return findings.map(redact)
}

function stepsOf(subjects: readonly Subject[]): readonly Step[] {
  const [first] = subjects
  if (first === undefined) throw new Error('a valid configuration has no upstream')
  const runtimes = subjects.filter(({ mount }) => mount.api === 'runtime')
  const runner = subjects.find(({ mount, wishes }) => mount.agentId !== null && mount.agentId === wishes.run?.agentId)
  const of = (subject: Subject, checks: readonly Check[]): readonly Step[] =>
    checks.map((check) => ({ check, subject, key: subject.mount.key }))
  const once = (checks: readonly Check[], subject = first): readonly Step[] =>
    of(subject, checks).map((step) => ({ ...step, key: '' }))
  return [
    ...once(FIRST),
    ...subjects.flatMap((one) => of(one, CHECKS_OF[one.mount.api])),
    ...subjects.flatMap((one) => of(one, [SEPARATION_CHECK])),
    ...once([READY_CHECK, CERTIFICATE_CHECK]),
    ...subjects.flatMap((one) => of(one, [STRANGER_CHECK])),
    ...once([PREFLIGHT_CHECK, BODIES_CHECK, HEADERS_CHECK]),
    ...subjects.filter(({ mount }) => mount.api !== 'agent').flatMap((one) => of(one, [CALLER_CHECK])),
    ...once([RUN_CHECK], runner ?? runtimes[0]),
    ...once([QUIET_CHECK], runtimes[0]),
  ]
}

function named(check: string, { key }: Step): string {
  return key === '' ? check : `${check}:${key}`
}

function upstreamOf({ url, timeouts, tls }: Mount, sources: Sources, wishes: Wishes): Upstream {
  const connect = Math.min(timeouts.connect === 0 ? wishes.timeout : timeouts.connect, wishes.timeout)
  return openUpstream({
    url,
    timeouts: { connect, headers: 0, body: 0 },
    tls: upstreamTls(tls, sources),
  })
}

/** In milliseconds. */
function limitOf({ check: { atLeast = 0 }, subject }: Pick<Step, 'check' | 'subject'>): number {
  return Math.max(subject.wishes.timeout, typeof atLeast === 'number' ? atLeast : atLeast(subject))
}

async function within(check: Check, subject: Subject): Promise<Results> {
  const limit = limitOf({ check, subject })
  const controller = new AbortController()
  const late = Promise.withResolvers<Results>()
  const timer = setTimeout(() => {
    late.resolve(check.late?.(subject) ?? notChecked(`no answer within ${seconds(limit)}`, 'increase --timeout'))
    controller.abort()
  }, limit)
  try {
    return await Promise.race([check.run(subject, controller.signal), late.promise])
  } catch (error) {
    return notChecked(`${error instanceof NoAnswer ? 'no answer' : 'the check failed'} (${codeOf(error)})`)
  } finally {
    clearTimeout(timer)
    controller.abort()
  }
}

/** Asks a runtime or an agent what it is. What it answers is not trusted: only checked values leave this file. */
import { randomUUID } from 'node:crypto'
import type { RuntimeFacts } from '../../core/route/transport.ts'
import { explainFailure, type UpstreamSetting } from '../../http/upstream/failure-text.ts'
import { listedThreads } from '../../http/upstream/startup-checks.ts'
import { askRuntime, type Verdict } from '../../http/upstream/transport-probe.ts'
import { openUpstream, type Upstream } from '../../http/upstream/upstream.ts'
import { makeAskHistory } from '../../http/pipeline/history.ts'
import { NotFound, NotRuntime } from './not-found.ts'

export interface UpstreamPlace {
  readonly origin: string
  /** `''` or `/a/b`; for an agent, the path to which runs are POSTed. */
  readonly path: string
  /** Null for a runtime. */
  readonly agentId: string | null
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** PEM. */
  readonly ca: string | undefined
}

export interface FoundRuntime {
  readonly kind: 'runtime'
  readonly path: string
  readonly facts: RuntimeFacts
  /** Null if it does not look like a version. */
  readonly version: string | null
  /** How many threads the first page of its list has; null without a list. */
  readonly threads: number | null
  /** Whether the runtime says that a new thread has no history. */
  readonly canVerify: boolean
}

export interface FoundAgent {
  readonly kind: 'agent'
}

/** Where runtimes are mounted, for a URL without a path. */
const USUAL_PATHS = ['', '/api/copilotkit', '/copilotkit'] as const

/** The keys of a configuration are for servers that init cannot ask: write them to the file of --offline. */
const SETTINGS: Readonly<Record<UpstreamSetting, string>> = {
  url: '--upstream',
  ca: '--upstream-ca',
  timeout: '--timeout',
  certificate: 'upstream.tls.certificateFile',
  key: 'upstream.tls.keyFile',
  minVersion: 'upstream.tls.minVersion',
  serverName: 'upstream.tls.serverName',
}

/** @param timeout milliseconds for each question @throws NotFound */
export async function askUpstream(place: UpstreamPlace, timeout: number): Promise<FoundRuntime | FoundAgent> {
  const { origin, ca, agentId } = place
  const upstream = openUpstream({
    url: origin,
    timeouts: { connect: timeout, headers: 0, body: 0 },
    tls: { ca, cert: undefined, key: undefined, minVersion: 'TLSv1.2', servername: undefined },
  })
  try {
    await requireAnswer(upstream, place, timeout)
    return agentId === null ? await findRuntime(upstream, place, timeout) : { kind: 'agent' }
  } finally {
    await upstream.close()
  }
}

/** An agent takes runs by POST, so any answer to a GET shows that a server is there. */
async function requireAnswer(
  upstream: Upstream,
  { origin, path, agentId, headers }: UpstreamPlace,
  timeout: number,
): Promise<void> {
  const target = agentId === null ? `${path}/info` : path === '' ? '/' : path
  const signal = AbortSignal.timeout(timeout)
  const answer = await upstream.send({ method: 'GET', target, headers: { ...headers, accept: 'application/json' } }, signal)
  if (answer.outcome === 'answered') return answer.body.destroy()
  if (signal.aborted) {
    throw new NotFound(`${origin} gives no answer in time`, 'check that the server listens there, or increase --timeout')
  }
  const setting = (key: UpstreamSetting): string => SETTINGS[key]
  const server = agentId === null ? 'runtime' : 'agent'
  const { message, remedy } = explainFailure(answer.detail, { url: origin, server, setting })
  throw new NotFound(message, remedy)
}

async function findRuntime(upstream: Upstream, place: UpstreamPlace, timeout: number): Promise<FoundRuntime> {
  const verdicts: Verdict[] = []
  for (const path of place.path === '' ? USUAL_PATHS : [place.path]) {
    const verdict = await askRuntime({ upstream, basePath: path, headers: place.headers }, null, AbortSignal.timeout(timeout))
    if (verdict.kind === 'runtime') return describeRuntime(upstream, { ...place, path }, verdict, timeout)
    verdicts.push(verdict)
  }
  throw explainVerdict(verdicts[0], place.origin)
}

function explainVerdict(verdict: Verdict | undefined, origin: string): NotFound {
  const why = verdict === undefined || verdict.kind === 'runtime' ? '' : verdict.why.replace(/: (?:neither|name) .*$/, '')
  if (verdict?.kind === 'away') {
    return new NotFound(`${origin} is there, but gives no usable answer: ${why}`, 'start its runtime, or look at its log')
  }
  if (/answered 40[13]$/.test(why)) {
    return new NotRuntime(
      `${origin} requires a credential: ${why}`,
      'name a file with the header that it checks, such as --upstream-header x-service-token=FILE; for an AG-UI agent without a runtime, add --agent ID',
    )
  }
  return new NotRuntime(
    `${origin} is not a runtime at this path: ${why}`,
    'correct the path in --upstream, such as /api/copilotkit; for an AG-UI agent without a runtime, add --agent ID',
  )
}

async function describeRuntime(
  upstream: Upstream,
  { path, headers }: UpstreamPlace,
  { facts, version }: Extract<Verdict, { kind: 'runtime' }>,
  timeout: number,
): Promise<FoundRuntime> {
  const asking = { ...headers, accept: 'application/json', 'accept-encoding': 'identity' }
  // The platform lists only threads of a user, and these questions name none.
  const threads = facts.managed
    ? null
    : await listedThreads({ upstream, basePath: path }, facts, asking, AbortSignal.timeout(timeout))
  const isSaid = facts.histories === true && !facts.managed
  const history = isSaid
    ? await makeAskHistory(upstream, path)(facts, randomUUID(), asking, AbortSignal.timeout(timeout))
    : 'cannot-tell'
  return {
    kind: 'runtime',
    path,
    facts,
    version: /^[\w.+-]{1,40}$/.test(version) ? version : null,
    threads,
    canVerify: history === 'none',
  }
}

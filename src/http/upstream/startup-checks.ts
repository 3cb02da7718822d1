/** Reports faults between gateway and upstream at start (docs/explanation/security-model.md, "Assumptions"). */
import { randomUUID } from 'node:crypto'
import { classify, type RouteDescriptor } from '../../core/route/classify.ts'
import { isObject } from '../../core/json/read.ts'
import { isRefusal } from '../../core/reasons.ts'
import type { UnknownThread } from '../../core/decide/decide.ts'
import { hasOperation, type RuntimeFacts } from '../../core/route/transport.ts'
import type { Logger } from '../../observe/log.ts'
import type { StoreState } from '../../store/port/state.ts'
import { openPastLoopback } from './exposure.ts'
import { makeAskHistory } from '../pipeline/history.ts'
import type { Readiness } from '../listeners/readiness.ts'
import { NoList, SEARCH, threadPages } from './thread-pages.ts'
import { upstreamRequest, jsonOf, type Upstream } from './upstream.ts'
import { collect } from './answer-body.ts'

export interface StartupChecks {
  look(upstream: RuntimeFacts): void
  historyUntold(): void
  stop(): void
}

export interface StartupCheckParts {
  readonly upstream: Upstream
  readonly upstreamUrl: string
  readonly addresses: readonly string[]
  readonly basePath: string
  readonly headers: Readonly<Record<string, string>>
  readonly store: Pick<StoreState, 'isEmpty'>
  readonly scope: string
  readonly unknownThread: UnknownThread
  readonly readiness: Pick<Readiness, 'set'>
  readonly log: Logger
}

/** A check at start must not hang on an upstream that stalls. */
const LOOK_TIMEOUT_MS = 30_000
const MAX_LIST_BYTES = 32 * 1024 * 1024

const LIST = classify('GET', ['threads'], new Map()) as RouteDescriptor

function hasList(facts: RuntimeFacts): boolean {
  return hasOperation(facts, facts.transport === 'langgraph' ? SEARCH.route : LIST.route)
}

export function runStartupChecks(parts: StartupCheckParts): StartupChecks {
  const headers = { ...parts.headers, accept: 'application/json', 'accept-encoding': 'identity' }

  let stopped = false
  let untold = false
  const historyUntold = (): void => {
    if (stopped) return
    const why =
      'the upstream does not serve thread histories (422, or too old for them), so verify refuses every new thread: set ownership.unknownThread to claim or deny'
    if (!untold) parts.log.error(why)
    untold = true
    parts.readiness.set('unknownThread', why)
  }

  const warnOfOldThreads = async (upstream: RuntimeFacts): Promise<void> => {
    if (!hasList(upstream) || !(await parts.store.isEmpty(parts.scope))) return
    const threads = await listedThreads(parts, upstream, headers, AbortSignal.timeout(LOOK_TIMEOUT_MS))
    if (threads === 0) return
    const none = parts.scope === '' ? 'the ownership table is empty' : 'the ownership table has no thread of this upstream'
    if (threads === null) {
      parts.log.warn(
        { unknownThread: 'claim' },
        `${none} and the upstream did not give its list of threads: THE FIRST USER TO RUN AN EXISTING THREAD OWNS IT. Use unknownThread: verify or deny`,
      )
      return
    }
    parts.log.warn(
      { threads, unknownThread: 'claim' },
      `${none} and the upstream has threads: THE FIRST USER TO RUN ONE OF THEM OWNS IT. Use unknownThread: verify or deny`,
    )
  }

  const tryToVerify = async (upstream: RuntimeFacts): Promise<void> => {
    const history = await makeAskHistory(parts.upstream, parts.basePath)(
      upstream,
      randomUUID(),
      headers,
      AbortSignal.timeout(LOOK_TIMEOUT_MS),
    )
    if (isRefusal(history)) return
    if (history === 'cannot-tell') historyUntold()
    else if (!stopped) {
      untold = false
      parts.readiness.set('unknownThread', null)
    }
  }

  const warnOfOpenUpstream = async (): Promise<void> => {
    const addresses = await openPastLoopback(parts.upstreamUrl, parts.addresses)
    if (addresses.length === 0) return
    parts.log.warn(
      { addresses },
      'the port of the upstream is open on other addresses of this machine, too: CLIENTS THAT REACH THEM BYPASS THE GATEWAY. Let the runtime listen on 127.0.0.1 alone',
    )
  }

  return {
    historyUntold,
    stop: () => void (stopped = true),
    look(upstream) {
      const looks = { claim: warnOfOldThreads, verify: tryToVerify, deny: () => Promise.resolve() }
      Promise.all([looks[parts.unknownThread](upstream), warnOfOpenUpstream()]).catch((error: unknown) =>
        parts.log.error({ err: error }, 'the upstream could not be checked'),
      )
    },
  }
}

/** How many threads the first page of the list has; null if the upstream gave no list. */
export async function listedThreads(
  { upstream, basePath }: Pick<StartupCheckParts, 'upstream' | 'basePath'>,
  facts: RuntimeFacts,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<number | null> {
  if (facts.transport === 'langgraph') return searchedThreads({ upstream, basePath, facts, headers, signal })
  const answer = await upstream.send(upstreamRequest(facts, basePath, { descriptor: LIST, headers }), signal)
  if (answer.outcome === 'failed') return null
  const bytes = await collect(answer.body, MAX_LIST_BYTES)
  return answer.status === 200 && typeof bytes !== 'string' ? countThreads(bytes) : null
}

async function searchedThreads(parts: Parameters<typeof threadPages>[0]): Promise<number | null> {
  try {
    const first = await threadPages(parts, null).next()
    return first.done === true ? 0 : first.value.length
  } catch (error) {
    if (error instanceof NoList) return null
    throw error
  }
}

function countThreads(bytes: Buffer): number | null {
  const value = jsonOf(bytes)
  const threads = isObject(value) ? value['threads'] : undefined
  return Array.isArray(threads) ? threads.length : null
}

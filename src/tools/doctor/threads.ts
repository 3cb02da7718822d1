/** Checks that `ownership.unknownThread` fits the upstream: a wrong value gives threads to strangers, or to no user. */
import { randomUUID } from 'node:crypto'
import { isRefusal } from '../../core/reasons.ts'
import { hasOperation, type RuntimeFacts } from '../../core/route/transport.ts'
import { makeAskHistory, type History } from '../../http/pipeline/history.ts'
import { listedThreads } from '../../http/upstream/startup-checks.ts'
import { routeOf } from './requests.ts'
import { notChecked, ok, problem, warning, type Result } from './finding.ts'
import { UNSHOWN, type Check, type Known, type Results, type Subject } from './subject.ts'

export const THREAD_CHECKS: readonly Check[] = [
  { name: 'upstream.histories', run: histories },
  { name: 'upstream.threads', run: oldThreads },
]

const CLAIM_OR_DENY = 'set ownership.unknownThread to claim or deny: docs/how-to/authorize/unknown-threads.md explains the choice'

export function asCaller({ mount, wishes, headers }: Subject): Readonly<Record<string, string>> {
  if (wishes.token === null || !mount.forwardAuthorization) return headers
  return { authorization: `Bearer ${wishes.token}`, ...headers }
}

async function histories(subject: Subject, signal: AbortSignal): Promise<Results> {
  const { mount, known, upstream, wishes } = subject
  if (known.facts === null) return notChecked(UNSHOWN)
  const askHistory = makeAskHistory(upstream, mount.basePath)
  const history = await askHistory(known.facts, randomUUID(), asCaller(subject), signal)
  if (isRefusal(history)) return notChecked('the upstream gave no valid answer')
  const found = historyOf404(history, known)
  if (mount.unknownThread === 'verify') return judgeVerify(found, wishes.token)
  const could = found === 'none' ? 'would work' : 'would not work'
  return ok(`unknownThread is ${mount.unknownThread}; verify ${could} with this upstream`)
}

/** A runtime without the routes answers 404 for every thread, which looks like a thread without a history. */
function historyOf404(history: History, { histories }: Known): History | 'without-routes' | 'perhaps-without-routes' {
  if (history !== 'none' || histories === true) return history
  return histories === false ? 'without-routes' : 'perhaps-without-routes'
}

function judgeVerify(found: ReturnType<typeof historyOf404>, token: string | null): Result {
  switch (found) {
    case 'none':
      return ok('verify works: the upstream says that a new thread has no history')
    case 'cannot-tell':
      return problem('the upstream does not serve thread histories, so verify refuses every new thread', CLAIM_OR_DENY)
    case 'without-routes':
      return problem(
        'the upstream has no routes for thread histories and answers 404, so verify treats every thread as new',
        CLAIM_OR_DENY,
      )
    case 'perhaps-without-routes':
      return notChecked('it is not known whether the upstream has the routes for thread histories')
    case 'some':
      if (token === null)
        return notChecked('the upstream may require a token of a caller for histories', 'pass one with --token-file')
      return problem(
        'the upstream does not say that a random thread has no history, so verify refuses every new thread',
        `let the runtime answer callers about new threads, or ${CLAIM_OR_DENY}`,
      )
  }
}

async function oldThreads(subject: Subject, signal: AbortSignal): Promise<Results> {
  const { mount, known, upstream } = subject
  if (mount.unknownThread !== 'claim') {
    return ok(`unknownThread is ${mount.unknownThread}: threads from before the gateway cannot be claimed`)
  }
  if (known.table.scopes === null) return notChecked('it is not known whether a thread has an owner')
  if (known.table.scopes.includes(mount.scope)) return ok('the ownership table has owners')
  if (known.facts === null) return notChecked(UNSHOWN)
  const count = await countThreads(subject, known.facts, upstream, signal)
  if (count === null) return notChecked('the upstream does not show its list of threads to the doctor')
  if (count === 0) return ok('the ownership table and the upstream are empty')
  const none = mount.scope === '' ? 'the ownership table is empty' : 'the ownership table has no thread of this upstream'
  return warning(
    `${none} and the upstream has threads (${count}): the first user to run one of them owns it`,
    'use unknownThread: verify or deny, or import the owners with threadwarden threads import. If there were owners, look for the earlier store',
  )
}

async function countThreads(
  subject: Subject,
  facts: RuntimeFacts,
  upstream: Subject['upstream'],
  signal: AbortSignal,
): Promise<number | null> {
  if (!hasOperation(facts, routeOf('GET', 'threads').route)) return null
  return listedThreads({ upstream, basePath: subject.mount.basePath }, facts, asCaller(subject), signal)
}

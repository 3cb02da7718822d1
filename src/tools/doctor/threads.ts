/** Checks that `ownership.unknownThread` fits the upstream: a wrong value gives threads to strangers, or to no user. */
import { randomUUID } from 'node:crypto'
import { headersWith } from '../../auth/request-credentials.ts'
import { isRefusal } from '../../core/reasons.ts'
import { isThreadId } from '../../core/route/ids.ts'
import type { RuntimeFacts } from '../../core/route/transport.ts'
import { makeAskHistory, type History } from '../../http/pipeline/history.ts'
import type { ThreadLookup } from '../../store/port/lookup.ts'
import { codeOf } from './requests.ts'
import { notChecked, ok, problem, seconds, unknown, warning, type Result } from './finding.ts'
import { UNSHOWN, type Check, type Comparison, type Known, type Results, type Sample, type Subject } from './subject.ts'
import { NoList } from '../../http/upstream/thread-pages.ts'
import { listedPages } from './thread-list.ts'

export const THREAD_CHECKS: readonly Check[] = [
  { name: 'upstream.histories', run: histories },
  { name: 'upstream.threads', run: oldThreads, late: oldThreadsSoFar },
]

const CLAIM_OR_DENY = 'set ownership.unknownThread to claim or deny: docs/how-to/authorize/unknown-threads.md explains the choice'

export function asCaller({ config, mount, wishes, headers }: Subject): Readonly<Record<string, string>> {
  if (wishes.token === null) return headers
  const { authorization, cookie } = headersWith(wishes.token, config)
  if (authorization !== undefined) return mount.forwardAuthorization ? { authorization, ...headers } : headers
  const isForwarded = cookie !== undefined && mount.forwardCookies.some((name) => cookie.startsWith(`${name}=`))
  return isForwarded ? { cookie, ...headers } : headers
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

/** More take too long to compare, and tell the operator nothing new. */
export const MOST_COMPARED = 20_000

async function oldThreads(subject: Subject, signal: AbortSignal): Promise<Results> {
  const { mount, known } = subject
  if (known.table.lookUp === null) return cannotCompare(subject, 'the ownership table cannot be read')
  if (known.facts === null) return mount.unknownThread === 'claim' ? notChecked(UNSHOWN) : cannotCompare(subject, UNSHOWN)
  const comparison = nothingCompared()
  known.comparison = comparison
  try {
    await compare(subject, known.facts, comparison, signal)
  } catch (error) {
    if (comparison.listed === 0) return cannotCompare(subject, whyStopped(error))
    comparison.stopped = whyStopped(error)
  }
  return judgeComparison(subject, comparison)
}

function whyStopped(error: unknown): string {
  return error instanceof NoList ? error.message : `the comparison failed (${codeOf(error)})`
}

/** The time limit is over, but the threads that were compared until then may already be a finding. */
function oldThreadsSoFar(subject: Subject): Results {
  const { comparison } = subject.known
  const why = `the time limit was reached (${seconds(subject.wishes.timeout)}): increase --timeout`
  if (comparison === null || comparison.listed === 0) return cannotCompare(subject, why)
  return judgeComparison(subject, { ...comparison, stopped: why })
}

function cannotCompare({ mount }: Subject, why: string): Result {
  if (mount.unknownThread !== 'claim') return ok(`${settingOfOldThreads(mount)} (the threads were not compared: ${why})`)
  return notChecked(
    `cannot compare the threads of the upstream with the ownership table: ${why}`,
    'if the upstream is older than the gateway, import the owners with threadwarden threads import, or use unknownThread: verify or deny',
  )
}

function settingOfOldThreads({ unknownThread }: Subject['mount']): string {
  return `unknownThread is ${unknownThread}: threads from before the gateway cannot be claimed`
}

function nothingCompared(): Comparison {
  const none = (): Sample => ({ count: 0, examples: [] })
  return { listed: 0, unowned: none(), observed: none(), disputed: none(), unreachable: none(), stopped: null }
}

const BATCH = 1000

async function compare(subject: Subject, facts: RuntimeFacts, comparison: Comparison, signal: AbortSignal): Promise<void> {
  const table = await subject.known.table.lookUp?.()
  if (table === undefined) return
  // A list may change between two of its pages, which then repeat a thread.
  const counted = new Set<string>()
  try {
    for await (const page of listedPages(subject, facts, asCaller(subject), signal)) {
      const news = [...new Set(page)].filter((id) => !counted.has(id))
      for (let at = 0; at < news.length; at += BATCH) {
        const room = MOST_COMPARED - counted.size
        const ids = news.slice(at, at + Math.min(BATCH, room))
        if (ids.length === 0) {
          comparison.stopped = `only the first ${MOST_COMPARED} threads of the list were compared`
          return
        }
        for (const id of ids) counted.add(id)
        await sort(ids, subject.mount.scope, table, comparison)
      }
    }
  } finally {
    await table.close()
  }
}

async function sort(ids: readonly string[], scope: string, table: ThreadLookup, comparison: Comparison): Promise<void> {
  for (const id of ids) if (!isThreadId(id)) note(comparison.unreachable, id)
  for (const { threadId, hasRow, runners } of await table.known(scope, ids.filter(isThreadId))) {
    if (hasRow) continue
    note(runners === 0 ? comparison.unowned : runners === 1 ? comparison.observed : comparison.disputed, threadId)
  }
  comparison.listed += ids.length
}

const MOST_EXAMPLES = 3
const LONGEST_EXAMPLE = 64

function note(sample: Sample, id: string): void {
  sample.count += 1
  if (sample.examples.length < MOST_EXAMPLES)
    sample.examples.push(id.length > LONGEST_EXAMPLE ? `${id.slice(0, LONGEST_EXAMPLE)}…` : id)
}

function judgeComparison(subject: Subject, comparison: Comparison): readonly Result[] {
  const { observed, disputed, unreachable } = comparison
  return [
    judgeUnowned(subject, comparison),
    ...(observed.count === 0 ? [] : [judgeObserved(subject, observed)]),
    ...(disputed.count === 0 ? [] : [judgeDisputed(subject, disputed)]),
    ...(unreachable.count === 0
      ? []
      : [
          ok(
            `threads of the upstream with an id that the gateway refuses: ${sampleText(unreachable)}. No user can reach them through the gateway`,
          ),
        ]),
  ]
}

function judgeUnowned({ mount, known }: Subject, { listed, unowned, stopped }: Comparison): Result {
  const rest = stopped === null ? '' : `. Not all threads were compared: ${stopped}`
  const found = `threads of the upstream without an owner: ${sampleText(unowned, listed)}`
  if (mount.unknownThread !== 'claim') return ok(`${settingOfOldThreads(mount)}. ${upperFirst(found)}${rest}`)
  if (unowned.count > 0) {
    const isNew = known.table.scopes?.includes(mount.scope) !== true
    const none = mount.scope === '' ? 'the ownership table is empty' : 'the ownership table has no thread of this upstream'
    return warning(
      `${isNew ? `${none}; ` : ''}${found}. The first user who runs one of them owns it${rest}`,
      `import their owners with threadwarden threads import, or use unknownThread: verify or deny${isNew ? '. If there were owners, look for the earlier store' : ''}`,
    )
  }
  if (stopped !== null) return unknown(`no thread without an owner among the first ${listed} of the upstream${rest}`)
  const scoped = mount.userScoped ? '. It separates users, so it may not list all threads' : ''
  return ok(
    listed === 0
      ? `the upstream lists no threads${scoped}`
      : `no thread that the upstream lists can be claimed by its first user (${listed})${scoped}`,
  )
}

function judgeObserved({ mount, config }: Subject, observed: Sample): Result {
  const found = `threads without an owner that one user ran in observe mode: ${sampleText(observed)}`
  const confirm = 'threadwarden threads import --from-observed makes that user the owner'
  if (mount.unknownThread === 'claim') return ok(`${found}. Only that user can claim such a thread`)
  if (config.enforcement === 'observe') return ok(`${found}. With enforce, no user can use such a thread: ${confirm}`)
  return warning(`${found}. No user can use such a thread`, confirm)
}

function judgeDisputed({ config }: Subject, disputed: Sample): Result {
  const found = `threads without an owner that several users ran in observe mode: ${sampleText(disputed)}`
  const decide = 'threadwarden threads assign gives it to one of them'
  if (config.enforcement === 'observe') return ok(`${found}. With enforce, no user can use such a thread: ${decide}`)
  return warning(`${found}. No user can use such a thread`, decide)
}

function sampleText({ count, examples }: Sample, of?: number): string {
  const share = of === undefined ? String(count) : `${count} of ${of}`
  return count === 0 ? share : `${share} (for example ${examples.join(', ')})`
}

function upperFirst(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`
}

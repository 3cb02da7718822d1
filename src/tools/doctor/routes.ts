/** Compares the routes of the upstream with those that the gateway expects (core/routes.ts). */
import { ROUTES, type Route } from '../../core/route/routes.ts'
import type { RuntimeFacts } from '../../core/route/transport.ts'
import { askInfo } from './requests.ts'
import { notChecked, ok, problem, unknown, warning, type Result } from './finding.ts'
import { probeMethods, probePaths, probeReadablePaths, type ProbedRoute } from './route-probe.ts'
import { UNSHOWN, type Check, type Known, type Results, type Subject } from './subject.ts'

const ESSENTIAL: readonly string[] = ['agent/run', 'agent/connect']

export const ROUTES_CHECK: Check = { name: 'upstream.routes', run: compare }

async function compare(subject: Subject, signal: AbortSignal): Promise<Results> {
  const { facts } = subject.known
  if (facts === null) return notChecked(UNSHOWN)
  const single = facts.transport === 'single-route'
  const probed = await (single ? probeMethods(subject, facts, signal) : probePaths(subject, signal))
  if (probed !== null) {
    subject.known.histories = presence(probed, 'threads/messages')
    return [judge(probed, subject.known), ...(single ? [] : await caseOf(subject, facts, signal))]
  }
  if (single) return unknown('the upstream answers alike to methods that exist and that do not: its routes cannot be told')
  const read = await probeReadablePaths(subject, signal)
  subject.known.histories = presence(read, 'threads/messages')
  return [partly(read), ...(await caseOf(subject, facts, signal))]
}

function presence(probed: readonly ProbedRoute[], id: string): boolean | null {
  const one = probed.find(({ routes }) => routes.some((route) => route.id === id))
  return one === undefined || one.outcome === 'untold' ? null : one.outcome === 'there'
}

function judge(probed: readonly ProbedRoute[], known: Known): Result {
  const absent = probed.filter(({ outcome }) => outcome === 'absent').flatMap(({ routes }) => routes)
  const essential = names(absent.filter(({ id }) => ESSENTIAL.includes(id)))
  if (essential !== '') {
    return problem(`the upstream has no ${essential}`, 'is it a runtime, and does everything on the way pass its routes on?')
  }
  const differing = probed.filter(
    ({ outcome, methods, routes }) => outcome === 'there' && methods !== null && !isSame(methods, routes),
  )
  if (differing.length > 0) {
    const differences = differing.map(
      ({ routes, methods }) =>
        `${names(routes)} takes ${methods?.join(', ') ?? ''}, and the gateway expects ${expected(routes).join(', ')}`,
    )
    return warning(
      differences.join('; '),
      'requests that only one of the two knows are refused: read docs/transports.md on what differs between versions',
    )
  }
  // The runtime hides its memory routes unless its configuration exposes them.
  const missing = absent.filter(({ id }) => !id.startsWith('memories/'))
  const untold = probed.filter(({ outcome }) => outcome === 'untold').flatMap(({ routes }) => routes)
  if (missing.length > 0 && known.version?.startsWith('1.75.') === true) {
    return warning(
      `the upstream has no ${names(missing)}, which a runtime of its version has`,
      'does something on the way keep requests back? Callers get 404 for these',
    )
  }
  if (untold.length > 0) return unknown(`cannot be told of ${names(untold)}`)
  if (absent.length > 0) return ok(`as the gateway expects, without ${names(absent)}: callers get 404 for these`)
  return ok('all the routes that the gateway expects, with their methods')
}

/** An upstream that answers 404 to wrong methods shows only its readable routes. */
function partly(read: readonly ProbedRoute[]): Result {
  const by = (outcome: ProbedRoute['outcome']): string =>
    names(read.filter((one) => one.outcome === outcome).flatMap(({ routes }) => routes))
  const seen = read.filter(({ outcome }) => outcome !== 'untold').flatMap(({ routes }) => routes)
  const parts = [
    ['it has', by('there')],
    ['it has no', by('absent')],
    ['cannot tell', names(ROUTES.filter((route) => !seen.includes(route) && route.id !== 'info'))],
  ].flatMap(([what, which]) => (which === '' ? [] : [`${what} ${which}`]))
  return unknown(
    `the upstream answers a wrong method as it answers a wrong path, so only routes to GET can be told: ${parts.join('; ')}`,
  )
}

async function caseOf(subject: Subject, facts: RuntimeFacts, signal: AbortSignal): Promise<readonly Result[]> {
  const { basePath } = subject.mount
  const { status } = await subject.upstream
    .send({ method: 'GET', target: `${basePath}/INFO`, headers: subject.headers }, signal)
    .then((answer) => {
      if (answer.outcome === 'failed') return { status: null }
      answer.body.destroy()
      return answer
    })
  const exact = await askInfo(subject, facts, signal)
  if (status !== 200 || exact.status !== 200) return []
  const message = 'the upstream matches paths without regard to case; the gateway does not, and sends only the exact ones'
  return [{ ...ok(message), check: 'upstream.paths' }]
}

function names(routes: readonly Route[]): string {
  return [...new Set(routes.map(({ id }) => id))].join(', ')
}

function expected(routes: readonly Route[]): readonly string[] {
  return routes.map(({ method }) => method).sort()
}

function isSame(methods: readonly string[], routes: readonly Route[]): boolean {
  return methods.toSorted().join() === expected(routes).join()
}

/** Compares the routes of the upstream with those that the gateway expects (core/routes.ts). The probes have no effect there. */
import { ROUTES, type Route } from '../../core/route/routes.ts'
import { isLikeNewest } from '../../core/route/runtime-version.ts'
import { type RuntimeFacts, hasOperation } from '../../core/route/transport.ts'
import { askInfo, askUpstream, type HttpAnswer } from './requests.ts'
import { notChecked, ok, problem, unknown, warning, type Result } from './finding.ts'
import { UNSHOWN, type Check, type Known, type Results, type Subject } from './subject.ts'
import { randomUUID } from 'node:crypto'
import { envelopeOf } from '../../core/route/envelope.ts'

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
  if (single) return unknown('the upstream gives the same answer to known and unknown methods, so its routes are not known')
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
    return problem(
      `the upstream has no ${essential}`,
      'check that it is a runtime, and that every proxy before it forwards all routes',
    )
  }
  const differing = probed.filter(
    ({ outcome, methods, routes }) => outcome === 'there' && methods !== null && !isSame(methods, routes),
  )
  if (differing.length > 0) {
    const differences = differing.map(
      ({ routes, methods }) =>
        `${names(routes)} accepts ${methods?.join(', ') ?? ''}, but the gateway expects ${expected(routes).join(', ')}`,
    )
    return warning(
      differences.join('; '),
      'requests that only one of the two knows are refused: docs/reference/supported-versions.md has the differences between versions',
    )
  }
  // The runtime hides its memory routes unless its configuration exposes them.
  const missing = absent.filter(({ id }) => !id.startsWith('memories/'))
  const untold = probed.filter(({ outcome }) => outcome === 'untold').flatMap(({ routes }) => routes)
  if (missing.length > 0 && known.version !== null && isLikeNewest(known.version)) {
    return warning(
      `the upstream has no ${names(missing)}, which a runtime of its version has`,
      'check the proxies before the runtime: callers get 404 for these routes',
    )
  }
  if (untold.length > 0) return unknown(`not known for ${names(untold)}`)
  if (absent.length > 0) return ok(`as the gateway expects, but without ${names(absent)}: callers get 404 for these`)
  return ok('the upstream has all routes and methods that the gateway expects')
}

/** An upstream that answers 404 to wrong methods shows only its readable routes. */
function partly(read: readonly ProbedRoute[]): Result {
  const by = (outcome: ProbedRoute['outcome']): string =>
    names(read.filter((one) => one.outcome === outcome).flatMap(({ routes }) => routes))
  const seen = read.filter(({ outcome }) => outcome !== 'untold').flatMap(({ routes }) => routes)
  const parts = [
    ['it has', by('there')],
    ['it has no', by('absent')],
    ['not known:', names(ROUTES.filter((route) => !seen.includes(route) && route.id !== 'info'))],
  ].flatMap(([what, which]) => (which === '' ? [] : [`${what} ${which}`]))
  return unknown(
    `the upstream gives the same answer to a wrong method and a wrong path, so only GET routes are known: ${parts.join('; ')}`,
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
  const message = 'the upstream ignores the case of paths; the gateway forwards only exact paths'
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

interface ProbedRoute {
  readonly routes: readonly Route[]
  readonly outcome: 'there' | 'absent' | 'untold'
  /** The methods that the upstream names; null if it names none. */
  readonly methods: readonly string[] | null
}

const METHODS: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** No route has this method: for an existing path the runtime answers 405 with its methods, otherwise 404. */
const NO_ROUTE_HAS = 'PUT'

/** @returns null if the upstream answers alike for known and unknown paths */
async function probePaths(subject: Subject, signal: AbortSignal): Promise<readonly ProbedRoute[] | null> {
  const put = (path: string): Promise<HttpAnswer> =>
    askUpstream(subject, { method: NO_ROUTE_HAS, target: `${subject.mount.basePath}${path}`, headers: subject.headers }, signal)
  const [control, ...heard] = await Promise.all([put(`/${randomUUID()}`), ...byPath(ROUTES).map((routes) => put(pathOf(routes)))])
  const probed = byPath(ROUTES).map((routes, at) => read405(routes, heard[at]))
  return control.status === 404 && probed.some(({ outcome }) => outcome === 'there') ? probed : null
}

/** Reads the readable routes, for an upstream where wrong methods show nothing. The debug stream has its own check. */
async function probeReadablePaths(subject: Subject, signal: AbortSignal): Promise<readonly ProbedRoute[]> {
  const readable = ROUTES.filter(({ method, id }) => method === 'GET' && id !== 'info' && id !== 'cpk-debug-events')
  return Promise.all(
    readable.map(async (route): Promise<ProbedRoute> => {
      const target = `${subject.mount.basePath}${pathOf([route])}`
      const { status } = await askUpstream(subject, { method: 'GET', target, headers: subject.headers }, signal)
      const refused = status === 401 || status === 403 || status >= 500
      return { routes: [route], outcome: refused ? 'untold' : status === 404 ? 'absent' : 'there', methods: null }
    }),
  )
}

/** @returns null if the upstream answers alike for known and unknown methods */
async function probeMethods(subject: Subject, facts: RuntimeFacts, signal: AbortSignal): Promise<readonly ProbedRoute[] | null> {
  const { basePath } = subject.mount
  const post = (envelope: object): Promise<HttpAnswer> =>
    askUpstream(
      subject,
      {
        method: 'POST',
        target: basePath === '' ? '/' : basePath,
        headers: { ...subject.headers, 'content-type': 'application/json' },
        body: [Buffer.from(JSON.stringify(envelope))],
      },
      signal,
    )
  if (!isUnsupported(await post({ method: `doctor/${randomUUID()}` }))) return null
  const methods = ROUTES.filter((route) => envelopeOf(route) === 'method' && route.id !== 'info')
  // Without params and body each of these fails before it acts; the two of the inspector only read.
  const direct = methods.map(async (route): Promise<ProbedRoute> => {
    const heard = await post({ method: route.id })
    const untold = heard.status === 401 || heard.status === 403 || heard.status >= 500
    return { routes: [route], outcome: untold ? 'untold' : isUnsupported(heard) ? 'absent' : 'there', methods: null }
  })
  const tunnelled = byPath(ROUTES.filter((route) => envelopeOf(route) === 'tunnel')).map(async (routes): Promise<ProbedRoute> => {
    if (!routes.every((route) => hasOperation(facts, route))) return { routes, outcome: 'absent', methods: null }
    return read405(routes, await post({ method: 'resource/request', params: { path: pathOf(routes), httpMethod: NO_ROUTE_HAS } }))
  })
  return Promise.all([...direct, ...tunnelled])
}

function isUnsupported({ status, text }: HttpAnswer): boolean {
  return status === 400 && text.includes('Unsupported method')
}

function read405(routes: readonly Route[], heard: HttpAnswer | undefined): ProbedRoute {
  if (heard?.status === 404) return { routes, outcome: 'absent', methods: null }
  if (heard?.status !== 405) return { routes, outcome: 'untold', methods: null }
  const allow = heard.headers['allow']
  // Anything that is not a method is dropped: an upstream could write any text there.
  const named = typeof allow === 'string' ? allow.split(',').map((name) => name.trim().toUpperCase()) : null
  const methods = named?.map((name) => (METHODS.includes(name) ? name : 'another method')) ?? null
  return { routes, outcome: 'there', methods }
}

function byPath(routes: readonly Route[]): readonly (readonly Route[])[] {
  return [...Map.groupBy(routes, ({ path }) => path.join('/')).values()]
}

function pathOf([route]: readonly Route[]): string {
  return `/${(route?.path ?? []).map((word) => (word.startsWith(':') ? randomUUID() : word)).join('/')}`
}

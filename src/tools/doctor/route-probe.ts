/** Finds the routes of an upstream without any effect there: ids are random, and no request could change anything. */
import { randomUUID } from 'node:crypto'
import { envelopeOf } from '../../core/route/envelope.ts'
import { ROUTES, type Route } from '../../core/route/routes.ts'
import { hasOperation, type RuntimeFacts } from '../../core/route/transport.ts'
import { askUpstream, type HttpAnswer } from './requests.ts'
import type { Subject } from './subject.ts'

export interface ProbedRoute {
  readonly routes: readonly Route[]
  readonly outcome: 'there' | 'absent' | 'untold'
  /** The methods that the upstream names; null if it names none. */
  readonly methods: readonly string[] | null
}

const METHODS: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** No route has this method: for an existing path the runtime answers 405 with its methods, otherwise 404. */
const NO_ROUTE_HAS = 'PUT'

/** @returns null if the upstream answers alike for known and unknown paths */
export async function probePaths(subject: Subject, signal: AbortSignal): Promise<readonly ProbedRoute[] | null> {
  const put = (path: string): Promise<HttpAnswer> =>
    askUpstream(subject, { method: NO_ROUTE_HAS, target: `${subject.mount.basePath}${path}`, headers: subject.headers }, signal)
  const [control, ...heard] = await Promise.all([put(`/${randomUUID()}`), ...byPath(ROUTES).map((routes) => put(pathOf(routes)))])
  const probed = byPath(ROUTES).map((routes, at) => read405(routes, heard[at]))
  return control.status === 404 && probed.some(({ outcome }) => outcome === 'there') ? probed : null
}

/** Reads the readable routes, for an upstream where wrong methods show nothing. The debug stream has its own check. */
export async function probeReadablePaths(subject: Subject, signal: AbortSignal): Promise<readonly ProbedRoute[]> {
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
export async function probeMethods(
  subject: Subject,
  facts: RuntimeFacts,
  signal: AbortSignal,
): Promise<readonly ProbedRoute[] | null> {
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

/**
 * What the runtime hands on to the handler of an operation. Its hook is called before the last step, and on the
 * single-route transport it is shown the envelope there, or the request that was inside `resource/request`: what the
 * handler would read is made here as the runtime makes it then (runtime-behaviour.md, "Single-route transport").
 */
import type { Transport } from '../../src/core/route/transport.ts'

/** The operation, and the ids of its path or params. */
export interface ResolvedRoute {
  readonly method: string
  readonly agentId?: string
  readonly threadId?: string
  readonly memoryId?: string
}

/** What the runtime makes of a request. */
export interface Resolution {
  readonly route: ResolvedRoute
  /** The thread that the handler of this operation would use: of the path, or of the body (runtime-behaviour.md, "Routes"). */
  readonly thread: unknown
  /** The HTTP method where it tells operations apart; null where the envelope's own method does. */
  readonly method: string | null
  /** The query as the runtime's handlers read it: `searchParams` of the request's URL. */
  readonly query: readonly (readonly [string, string])[]
  /** The body as the runtime's handlers read it, undefined if they can't. Of a form, what a JSON body would say instead. */
  readonly body: unknown
}

/** The runtime's own: gives the request for a handler, or throws the response that refuses. */
export type MakeJsonRequest = (envelope: Request, body: unknown) => Request

const THREAD_IN_BODY = ['agent/run', 'agent/connect', 'agent/suggest', 'annotate']
const BODY_IN_ENVELOPE = ['agent/run', 'agent/suggest', 'agent/connect', 'transcribe']
const OWN_METHODS = [...BODY_IN_ENVELOPE, 'agent/stop', 'info', 'inspector/metadata', 'inspector/learning']
const LEARNING_PARAMS = ['agentId', 'skillsPage', 'insightsPage']

/**
 * Makes the last step.
 * @param transport how the runtime is mounted
 * @param request as the hook got it
 * @throws Response where the runtime would answer without calling the handler
 */
export async function handedOn(
  transport: Transport,
  route: ResolvedRoute,
  request: Request,
  makeJsonRequest: MakeJsonRequest,
): Promise<Resolution> {
  const isOpened = transport === 'single-route' && OWN_METHODS.includes(route.method)
  const last = isOpened ? await opened(route, request, makeJsonRequest) : request
  const body = isForm(last, route) ? await recordingOf(last) : await last.json().catch(() => undefined)
  return {
    route,
    thread: THREAD_IN_BODY.includes(route.method) ? memberOf(body, 'threadId') : route.threadId,
    method: isOpened ? null : last.method,
    query: [...new URL(last.url).searchParams],
    body,
  }
}

async function opened({ method }: ResolvedRoute, request: Request, makeJsonRequest: MakeJsonRequest): Promise<Request> {
  const envelope: unknown = await request.json()
  const body = memberOf(envelope, 'body')
  if (BODY_IN_ENVELOPE.includes(method)) return makeJsonRequest(request, body)
  if (method === 'agent/stop') return makeJsonRequest(request, body === undefined ? {} : body)
  const url = new URL(request.url)
  if (method === 'inspector/learning') {
    for (const key of LEARNING_PARAMS) {
      const value = memberOf(memberOf(envelope, 'params'), key)
      if (typeof value === 'string' || typeof value === 'number') url.searchParams.set(key, String(value))
    }
  }
  // The other handlers read nothing of the envelope.
  return new Request(url, { headers: request.headers })
}

/** A member of a value, if that is an object. */
export function memberOf(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined
}

/** True for a body that the runtime reads as a form. It looks for lower case alone; the gateway writes that. */
function isForm(request: Request, { method }: ResolvedRoute): boolean {
  const type = request.headers.get('content-type')?.toLowerCase() ?? ''
  return method === 'transcribe' && type.includes('multipart/form-data')
}

/** The recording of a form, as the handler takes it out; undefined if there is none in it. */
async function recordingOf(request: Request): Promise<object | undefined> {
  const form = await request.formData().catch(() => undefined)
  const audio = form?.get('audio')
  if (!(audio instanceof File)) return undefined
  const bytes = Buffer.from(await audio.arrayBuffer())
  // What a browser says of a recording that it doesn't know.
  const isUntold = audio.type === '' || audio.type === 'application/octet-stream'
  return { audio: bytes.toString('base64'), mimeType: isUntold ? 'audio/webm' : audio.type, filename: audio.name }
}

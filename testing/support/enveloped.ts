/**
 * Requests as a client of the single-route transport writes them: the same request, and the same attack, as an envelope. What
 * stood in the target stands in the params, and the text of the body stands inside as it is, so that what is wrong with either
 * stays wrong.
 */
import { BASE_PATH } from './pair.ts'

/** A request of the multi-route transport. */
export interface PlainRequest {
  readonly method: string
  /** As it stands on the request line. */
  readonly target: string
  readonly body?: string | Uint8Array | undefined
}

/** The operations that have a method of their own, by the way they are asked for on the other transport. */
const METHODS: Readonly<Record<string, string>> = {
  'GET /info': 'info',
  'POST /transcribe': 'transcribe',
  'GET /inspector-metadata': 'inspector/metadata',
  'GET /inspector-learning': 'inspector/learning',
}

/**
 * Writes a request as an envelope.
 * @param base the public base path
 * @returns null for what an envelope can't say: what is not below the base path, the debug feed, and CONNECT
 */
export function enveloped(
  request: PlainRequest,
  base = BASE_PATH,
): { readonly target: string; readonly body: Buffer<ArrayBuffer> } | null {
  const { method, target, body } = request
  const below = target.startsWith(base) ? target.slice(base.length) : ''
  if (method === 'CONNECT' || !/^[/\\%]./.test(below) || /^\/cpk-debug-events(?:\?|$)/.test(below)) return null
  const { head, query } = headOf(method, below)
  const payload = Buffer.from(typeof body === 'string' ? Buffer.from(body, 'utf8') : (body ?? []))
  const text = payload.length === 0 ? [] : [Buffer.from(',"body":'), payload]
  const written = Buffer.concat([Buffer.from(JSON.stringify(head).slice(0, -1)), ...text, Buffer.from('}')])
  return { target: `${base === '' ? '/' : base}${query}`, body: written }
}

/** What to ask for; the query of an operation with a method of its own stays where it was, on the request line. */
function headOf(httpMethod: string, below: string): { readonly head: object; readonly query: string } {
  const mark = below.indexOf('?')
  const path = mark === -1 ? below : below.slice(0, mark)
  const query = mark === -1 ? '' : below.slice(mark)
  const own = METHODS[`${httpMethod} ${path}`]
  if (own === 'inspector/learning') return { head: { method: own, params: paramsOf(query) }, query: '' }
  if (own !== undefined) return { head: { method: own }, query }
  const [, agentId = '', verb, threadId] = /^\/agent\/([^/]+)\/(?:(run|connect|suggest)|stop\/([^/]+))$/.exec(path) ?? []
  if (httpMethod !== 'POST' || agentId === '') {
    return { head: { method: 'resource/request', params: { path: below, httpMethod } }, query: '' }
  }
  if (threadId === undefined) return { head: { method: `agent/${verb}`, params: { agentId: idOf(agentId) } }, query }
  return { head: { method: 'agent/stop', params: { agentId: idOf(agentId), threadId: idOf(threadId) } }, query }
}

function paramsOf(query: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(query))
}

/** What a client means that writes this in a path; what no client would write so is taken as it stands. */
function idOf(segment: string): string {
  try {
    const decoded = decodeURIComponent(segment)
    return encodeURIComponent(decoded) === segment ? decoded : segment
  } catch {
    return segment
  }
}

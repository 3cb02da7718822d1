/**
 * What reaches a single-route upstream, read as the request of the multi-route transport that it stands for. It is strict:
 * nothing is an envelope here but what the gateway writes, byte by byte, so that whatever else it sends fails a test.
 */
import { BASE_PATH } from './pair.ts'

/** A request as it came. */
export interface WireRequest {
  readonly method: string
  readonly target: string
  readonly rawHeaders: readonly string[]
  readonly body: Buffer
}

const QUERY = ['agentId', 'skillsPage', 'insightsPage']

/**
 * Reads it.
 * @param base the base path of the upstream
 * @throws Error for anything that the gateway has no reason to send
 */
export function unwrapped(request: WireRequest, base = BASE_PATH): WireRequest {
  const asked = `${request.method} ${request.target}`
  if (asked !== `POST ${base === '' ? '/' : base}`) throw new Error(`${asked}, which no single-route upstream serves`)
  checkHeaders(request)
  const text = request.body.toString('utf8')
  const { method, params } = JSON.parse(text) as { method: string; params: Record<string, unknown> }
  const start = JSON.stringify({ method, params }).slice(0, -1)
  const rest = text.slice(start.length)
  const inner = rest.startsWith(',"body":') ? rest.slice(',"body":'.length, -1) : ''
  if (!text.startsWith(start) || rest !== (inner === '' ? '}' : `,"body":${inner}}`)) throw new Error(`no envelope: ${text}`)
  if (inner !== '' && JSON.stringify(JSON.parse(inner)).at(0) !== '{') throw new Error(`a body that is no object: ${text}`)
  const [verb, path] = operationOf(method, params)
  if (verb === 'GET' && inner !== '') throw new Error(`a GET with a body: ${text}`)
  const body = Buffer.from(inner)
  return { method: verb, target: base + path, rawHeaders: headersFor(request.rawHeaders, body), body }
}

/** The operation that an envelope asks for; its params have to be those of the operation and no others. */
function operationOf(method: string, params: Readonly<Record<string, unknown>>): readonly [method: string, path: string] {
  const take = (names: readonly string[]): readonly string[] => {
    const values = names.map((name) => params[name])
    if (Object.keys(params).join() !== names.join() || values.some((value) => typeof value !== 'string')) {
      throw new Error(`the params of ${method}: ${JSON.stringify(params)}`)
    }
    return values as readonly string[]
  }
  switch (method) {
    case 'agent/run':
    case 'agent/connect':
    case 'agent/suggest': {
      const [agentId = ''] = take(['agentId'])
      return ['POST', `/agent/${encodeURIComponent(agentId)}/${method.slice('agent/'.length)}`]
    }
    case 'agent/stop': {
      const [agentId = '', threadId = ''] = take(['agentId', 'threadId'])
      return ['POST', `/agent/${encodeURIComponent(agentId)}/stop/${encodeURIComponent(threadId)}`]
    }
    case 'info':
    case 'inspector/metadata':
      take([])
      return ['GET', `/${method.replace('/', '-')}`]
    case 'inspector/learning': {
      const names = Object.keys(params).filter((name) => QUERY.includes(name))
      const pairs = take(names).map((value, at) => `${names[at]}=${encodeURIComponent(value)}`)
      return ['GET', `/inspector-learning${pairs.length === 0 ? '' : `?${pairs.join('&')}`}`]
    }
    case 'transcribe':
      take([])
      return ['POST', '/transcribe']
    case 'resource/request': {
      const [path = '', httpMethod = ''] = take(['path', 'httpMethod'])
      if (!/^\/(?:threads|memories|annotate)(?=[/?]|$)/.test(path)) throw new Error(`the tunnel to ${path}`)
      if (!['GET', 'POST', 'PATCH', 'DELETE'].includes(httpMethod)) throw new Error(`the tunnel by ${httpMethod}`)
      return [httpMethod, path]
    }
    default:
      throw new Error(`the method ${method}`)
  }
}

function checkHeaders({ rawHeaders, body }: WireRequest): void {
  const of = (wanted: string) =>
    rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]!.toLowerCase() === wanted).join(' and ')
  for (const [name, value] of [
    ['content-type', 'application/json'],
    ['content-length', String(body.length)],
    ['transfer-encoding', ''],
    ['content-encoding', ''],
  ] as const) {
    if (of(name) !== value) throw new Error(`an envelope with ${name}: ${of(name)}`)
  }
}

/** The headers that the inner request would have had. */
function headersFor(rawHeaders: readonly string[], body: Buffer): readonly string[] {
  const headers: string[] = []
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!
    const own = ['content-type', 'content-length'].includes(name.toLowerCase())
    if (own && body.length === 0) continue
    headers.push(name, name.toLowerCase() === 'content-length' ? String(body.length) : rawHeaders[at + 1]!)
  }
  return headers
}

/**
 * The form of what was sent, beyond what the runtime of today makes of it: an older or newer one may read what this one
 * ignores, so an envelope has no key, and its params no name, that its method does not know (runtime-behaviour.md, "Single-route transport").
 */
import type { Transport } from '../../src/core/route/transport.ts'
import { memberOf } from './handed-on.ts'
import type { Written } from './message.ts'

const AGENT = ['agentId']
const PARAMS: Readonly<Record<string, readonly string[]>> = {
  'agent/run': AGENT,
  'agent/connect': AGENT,
  'agent/suggest': AGENT,
  'agent/stop': ['agentId', 'threadId'],
  info: [],
  transcribe: [],
  'inspector/metadata': [],
  'inspector/learning': ['agentId', 'skillsPage', 'insightsPage'],
  'resource/request': ['path', 'httpMethod'],
}

/** What is wrong with the form of a request to an upstream. */
export function shapeFaults(sent: Written, upstream: Transport, basePath: string): readonly string[] {
  return upstream === 'single-route' ? envelopeFaults(sent, basePath) : []
}

function envelopeFaults({ method, target, headers, body }: Written, basePath: string): readonly string[] {
  const faults: string[] = []
  const base = basePath === '' ? '/' : basePath
  // Express serves the base path alone; anywhere else, a proxy on the way may see a path that isn't meant.
  if (method !== 'POST' || target !== base) faults.push(`what was sent: ${method} ${target} instead of POST ${base}`)
  const types = headers.filter(([name]) => name.toLowerCase() === 'content-type').map(([, value]) => value)
  if (types.join() !== 'application/json') faults.push(`what was sent: the content type is ${types.join()}`)
  const envelope: unknown = JSON.parse(Buffer.from(body ?? []).toString('utf8'))
  const path = memberOf(memberOf(envelope, 'params'), 'path')
  // The runtime looks at the end of a path alone; one that looks at all of it would find nothing below its base path.
  if (typeof path === 'string' && !/^\/(?:threads|memories|annotate)(?:[/?]|$)/.test(path)) {
    faults.push(`what was sent: the path is ${JSON.stringify(path)}`)
  }
  const known = PARAMS[String(memberOf(envelope, 'method'))] ?? []
  return [
    ...faults,
    ...strange('envelope', Object.keys(envelope as object), ['method', 'params', 'body']),
    ...strange('params', Object.keys(memberOf(envelope, 'params') ?? {}), known),
  ]
}

function strange(what: string, keys: readonly string[], known: readonly string[]): readonly string[] {
  return keys.filter((key) => !known.includes(key)).map((key) => `what was sent: the ${what} has ${JSON.stringify(key)}`)
}

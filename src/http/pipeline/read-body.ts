/** Reads the body of a request, as much of it as a rule may allow. */
import type { IncomingMessage } from 'node:http'
import { configuredBody } from '../../core/route/bodies.ts'
import type { RouteDescriptor } from '../../core/route/classify.ts'
import { mostBody, mostBodyOfAny } from '../../core/decide/decide.ts'
import { RuleMatch, type Rules } from '../../core/decide/rules.ts'
import type { Refusal } from '../../core/reasons.ts'
import type { Route } from '../../core/route/routes.ts'
import { admit } from './classification.ts'
import { readEnveloped, readPayload, type PayloadParts, type ReadBody } from './payload.ts'
import type { Classified } from './stages.ts'

export interface ReadRequest {
  readonly outcome: 'read'
  readonly body: ReadBody
  readonly match: RuleMatch
}

export type ReadRequestBody = (
  request: Classified,
  message: IncomingMessage,
) => ReadRequest | Refusal | Promise<ReadRequest | Refusal>

export function makeReadBody(parts: PayloadParts, rules: Rules): ReadRequestBody {
  const configured = (route: Route): number => configuredBody(parts.limits, route)
  return (request, message) => {
    const { exchange, binding, caller, upstream, route } = request
    const { lines } = exchange.head
    const arriving = {
      message,
      lines,
      caller: caller.key,
      onWanted: () => {
        // Until here an answer without the body was possible. HTTP/1.0 has no interim answer (RFC 9110 §10.1.1).
        if (lines.has('expect') && message.httpVersion !== '1.0') exchange.response.writeContinue()
      },
    }
    if (route !== null) {
      const { descriptor, match } = route
      const mostOf = (): number => mostBody(match, configuredBody(parts.limits, descriptor.route))
      const reading = readPayload(parts, descriptor, upstream, mostOf, arriving)
      return reading instanceof Promise ? reading.then((body) => matched(body, match)) : matched(reading, match)
    }
    let match: RuleMatch | null = null
    const envelope = {
      admit(asked: RouteDescriptor): Refusal | null {
        const admitted = admit(request, asked, rules)
        if (!(admitted instanceof RuleMatch)) return admitted
        match = admitted
        return null
      },
      mostOf: (asked: RouteDescriptor) => (match === null ? 0 : mostBody(match, configured(asked.route))),
    }
    // The gateway reads no envelope beyond what the caller may send on some route, or beyond a small body.
    const most = Math.max(parts.limits.body, mostBodyOfAny(caller.principal, rules, binding.facts, configured))
    return readEnveloped(parts, most, envelope, arriving).then((body) => matched(body, match))
  }
}

function matched(body: ReadBody | Refusal, match: RuleMatch | null): ReadRequest | Refusal {
  if (body.outcome === 'refused') return body
  if (match === null) throw new Error('an envelope was read without its rules')
  return { outcome: 'read', body, match }
}

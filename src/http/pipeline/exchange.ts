/** One request and its answer: what the caller sent, and what log, metrics and audit report of it. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { corsHeaders } from '../../core/wire/cors.ts'
import { headerFault, headerLines, MAX_HEADER_LINES } from '../../core/wire/headers.ts'
import { refuse } from '../../core/reasons.ts'
import { ClientDisconnectSignal } from '../upstream/upstream.ts'
import type { Tracing } from '../../observe/traces.ts'
import type { Exchange, RequestHead, RequestSnapshot } from './stages.ts'

export function beginExchange(
  { rawHeaders, httpVersion, method = '' }: Pick<IncomingMessage, 'rawHeaders' | 'httpVersion' | 'method'>,
  response: ServerResponse,
  known: Pick<RequestHead, 'id' | 'startedAt' | 'address' | 'target'>,
  snapshot: RequestSnapshot,
  tracing: { readonly by: Tracing; readonly caller: 'trusted' | 'untrusted' } | null = null,
): Exchange {
  const lines = headerLines(rawHeaders)
  const fault = rawHeaders.length > 2 * MAX_HEADER_LINES ? refuse('http-headers-too-large') : headerFault(lines, httpVersion)
  const { cors } = snapshot.pipeline
  const { id, startedAt, address, target } = known
  const ownHeaders = { 'x-request-id': id }
  const answerHeaders = cors.origins.length === 0 ? ownHeaders : { ...corsHeaders(lines, cors), ...ownHeaders }
  return {
    head: { id, startedAt, address, target, method, lines, fault, answerHeaders },
    record: {
      upstream: null,
      client: 'multi-route',
      principal: undefined,
      credential: null,
      descriptor: null,
      facts: null,
      reason: undefined,
      rule: undefined,
      observed: null,
      hidden: 0,
      ended: undefined,
    },
    timing: { waited: 0, answeredAt: 0 },
    response,
    signal: new ClientDisconnectSignal(),
    trace: tracing === null ? null : tracing.by.begin(lines, tracing.caller),
    snapshot,
    isDecided: false,
  }
}

/** Requests in the middle of the pipeline, at a snapshot in which nothing changes. */
import { ServerResponse } from 'node:http'
import type { Permit } from '../../src/core/decide/decide.ts'
import { assumedFacts, type RuntimeFacts } from '../../src/core/route/transport.ts'
import { NOTHING_BEGUN, type Begun } from '../../src/http/pipeline/claim.ts'
import { beginExchange } from '../../src/http/pipeline/exchange.ts'
import { steadySnapshot as steady } from '../../src/tools/simulate/recording-upstream.ts'
import { incoming } from '../fuzz/message.ts'
import type { Authorized, Payload, Pipeline, RequestSnapshot, UpstreamBinding } from '../../src/http/pipeline/stages.ts'

/** A snapshot of a pipeline of which only some parts matter. */
export function steadySnapshot(pipeline: Partial<Pipeline> = {}, more: Partial<RequestSnapshot> = {}): RequestSnapshot {
  return steady({ cors: { origins: [], credentials: false }, enforcement: 'enforce', ...pipeline } as Pipeline, more)
}

/** What differs from a request for /info of which nothing is known. */
export interface Given {
  readonly payload?: Payload
  readonly upstream?: RuntimeFacts
  readonly response?: ServerResponse
  readonly begun?: Partial<Begun>
}

/** A request as it is once its permit was made. */
export function authorized(permit: Permit, { payload = { kind: 'none' }, upstream, response, begun }: Given = {}): Authorized {
  const message = incoming({ method: 'GET', target: '/', headers: [['Host', 'a']], body: null })
  const known = { id: 'id-1', startedAt: 0, address: '192.0.2.1', target: '/' }
  const exchange = beginExchange(message, response ?? new ServerResponse(message), known, steadySnapshot())
  exchange.record.reason = 'permitted'
  return {
    outcome: 'authorized',
    exchange,
    binding: {} as UpstreamBinding,
    caller: { principal: permit.principal, credential: null, key: permit.principal.id },
    upstream: upstream ?? assumedFacts('multi-route'),
    permit,
    payload,
    begun: { ...NOTHING_BEGUN, ...begun },
    permittedAt: 0,
    takePlace: null,
    budget: null,
  }
}

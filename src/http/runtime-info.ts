/** /info for a client of the other transport: what the upstream says of itself, with what works for this client. */
import { isObject } from '../core/json.ts'
import type { Permit } from '../core/decide.ts'
import { refuse } from '../core/reasons.ts'
import { infoFor } from '../core/transport.ts'
import type { Exchange } from './exchange.ts'
import type { Forwarder } from './forward.ts'
import { readAnswer, writtenAnew, type Rewritten } from './rewriting.ts'

const MAX_INFO_BYTES = 4 * 1024 * 1024

/** Asks the upstream and writes its answer anew for the client of this exchange. */
export async function bridgedInfo(
  forwarder: Forwarder,
  permit: Permit,
  exchange: Exchange,
  signal: AbortSignal,
): Promise<Rewritten> {
  const answer = await forwarder.ask(permit, exchange, signal)
  // Whatever else an upstream says to the question is its own, as it is without a bridge.
  if (answer.outcome === 'answered' && answer.status !== 200) return { outcome: 'elsewise', answer }
  const info = await readAnswer(answer, MAX_INFO_BYTES, 'upstream-answer-unreadable')
  if (info.outcome !== 'read') return info
  if (!isObject(info.value)) return refuse('upstream-answer-unreadable')
  return writtenAnew(infoFor(exchange.client, info.value), 'upstream-answer-unreadable')
}

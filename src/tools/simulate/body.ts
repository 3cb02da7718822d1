/** Reads the body of a simulated request: a whole JSON text, under the same rules as a real one. */
import { checkIds, isBodyOptional } from '../../core/route/bodies.ts'
import type { RouteDescriptor } from '../../core/route/classify.ts'
import { admitEnvelope, type EnvelopeRules } from '../../core/route/envelope.ts'
import { isObject, makeJsonReader, type JsonObject, type JsonReading } from '../../core/json/read.ts'
import { refuse, type Reason, type Refusal } from '../../core/reasons.ts'

export interface TriedBody {
  readonly outcome: 'read'
  /** Includes the thread that the body names. */
  readonly descriptor: RouteDescriptor
  readonly value: JsonObject | null
  readonly bytes: number
  readonly dropped: readonly string[]
}

/**
 * @param bytes empty for none
 * @param most its largest size, in bytes
 */
export function readBody(bytes: Uint8Array, descriptor: RouteDescriptor, most: number): TriedBody | Refusal {
  const { body } = descriptor.route
  if (bytes.length === 0)
    return without(descriptor, body.kind === 'recording' ? 'media-type-unsupported' : 'body-not-json', [], 0)
  if (body.kind === 'none') return refuse('body-unexpected')
  if (bytes.length > most) return refuse('body-too-large')
  const reading = read(bytes)
  return reading.outcome === 'refused' ? reading : checked(descriptor, reading.value, bytes.length, [])
}

/**
 * @param most its largest size in bytes, whatever the envelope asks for
 * @param rules what the gateway requires of its sender
 */
export function readEnvelope(bytes: Uint8Array, most: number, rules: EnvelopeRules): TriedBody | Refusal {
  if (bytes.length === 0) return refuse('route-unknown')
  if (bytes.length > most) return refuse('body-too-large')
  const reading = read(bytes)
  if (reading.outcome === 'refused') return reading
  const envelope = admitEnvelope(reading.value, bytes.length, rules)
  if (envelope.outcome === 'refused') return envelope
  const { descriptor, body, dropped } = envelope
  if (body === undefined) return without(descriptor, 'body-not-object', dropped, bytes.length)
  return isObject(body) ? checked(descriptor, body, bytes.length, dropped) : refuse('body-not-object')
}

function read(bytes: Uint8Array): JsonReading {
  const reader = makeJsonReader()
  return reader.push(bytes) ?? reader.end()
}

function without(descriptor: RouteDescriptor, missing: Reason, dropped: readonly string[], bytes: number): TriedBody | Refusal {
  return isBodyOptional(descriptor.route) ? { outcome: 'read', descriptor, value: null, bytes, dropped } : refuse(missing)
}

function checked(descriptor: RouteDescriptor, value: JsonObject, bytes: number, dropped: readonly string[]): TriedBody | Refusal {
  const ids = checkIds(descriptor, value)
  return ids.outcome === 'refused' ? ids : { outcome: 'read', descriptor: ids.descriptor, value, bytes, dropped }
}

/** Reads what goes along with a request and checks it against its route: JSON into one reading, recordings as they come. */
import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { checkBody, type BodyPolicy } from '../core/bodies.ts'
import type { RouteDescriptor } from '../core/classify.ts'
import type { HeaderLines } from '../core/headers.ts'
import { makeJsonReader, type Json, type JsonReader, type JsonReading } from '../core/json.ts'
import { isRefusal, refuse, type Refusal } from '../core/reasons.ts'
import type { Metrics } from '../observe/metrics.ts'
import { bodyForm, boundedBody, hasBody, holdBody, type BodyBudget } from './request-body.ts'

/**
 * What goes along with a permit: a JSON body that was checked (its bytes, and the `name` that a thread is given), or a
 * recording that streams through.
 */
export type Payload =
  | { readonly kind: 'none' }
  | { readonly kind: 'json'; readonly bytes: Buffer; readonly name: Json | undefined }
  | { readonly kind: 'stream'; readonly type: string; readonly length: string | undefined; readonly body: Readable }

/** What reading a body needs. */
export interface PayloadParts {
  readonly bodies: BodyPolicy
  readonly limits: { readonly body: number; readonly runBody: number }
  readonly budget: BodyBudget
  /** Told each name that did not pass. */
  readonly onDropped: (name: string) => void
  readonly metrics: Metrics
}

/** A request's body, read. */
export interface ReadBody {
  readonly outcome: 'read'
  /** The descriptor, with the thread that the body names. */
  readonly descriptor: RouteDescriptor
  readonly payload: Payload
  readonly release: () => void
}

const NOTHING: Payload = { kind: 'none' }

/** A body larger than this lets others have their turn between the steps of being read and written anew, in bytes. */
const LARGE_BODY = 256 * 1024

/**
 * Reads what a request brings along, as its route allows.
 * @param handshake true for the base path, where the body alone tells whether it is a question for /info
 * @param onWanted called when the body is about to be read
 * @returns the payload to forward, or a refusal: 415, 413, 400, 503, or 404 for a handshake that is none
 */
export async function readPayload(
  parts: PayloadParts,
  descriptor: RouteDescriptor,
  handshake: boolean,
  message: IncomingMessage,
  lines: HeaderLines,
  onWanted: () => void,
): Promise<ReadBody | Refusal> {
  const { route } = descriptor
  if (!hasBody(lines) && !handshake) {
    if (route.body.kind === 'json' && route.body.optional !== true) return refuse('body-not-json')
    if (route.body.kind === 'recording') return refuse('media-type-unsupported')
    return { outcome: 'read', descriptor, payload: NOTHING, release: () => {} }
  }
  if (route.body.kind === 'none' && !handshake) return refuse('body-unexpected')
  const form = bodyForm(lines)
  if (isRefusal(form)) return handshake ? refuse('route-unknown') : form
  const most = route.largeBody === true ? parts.limits.runBody : parts.limits.body
  if (form.form === 'multipart') {
    if (route.body.kind !== 'recording') return refuse(handshake ? 'route-unknown' : 'media-type-unsupported')
    const length = lines.get('content-length')?.[0]
    if (Number(length ?? 0) > most) return refuse('body-too-large')
    onWanted()
    return {
      outcome: 'read',
      descriptor,
      payload: { kind: 'stream', type: form.type, length, body: boundedBody(message, most) },
      release: () => {},
    }
  }
  const reader = makeJsonReader()
  const held = await holdBody(message, lines, most, parts.budget, onWanted, (piece) => reader.push(piece))
  if (isRefusal(held)) return handshake ? refuse('route-unknown') : held
  let read: Awaited<ReturnType<typeof readJson>> | undefined
  try {
    read = await readJson(parts, descriptor, reader, held.bytes, most, handshake)
  } finally {
    if (read?.outcome !== 'read') held.release()
  }
  return read.outcome === 'refused' ? read : { ...read, release: held.release }
}

async function readJson(
  parts: PayloadParts,
  descriptor: RouteDescriptor,
  reader: JsonReader,
  bytes: number,
  most: number,
  handshake: boolean,
): Promise<Omit<ReadBody, 'release'> | Refusal> {
  // A chunked body may turn out to be empty.
  const optional = descriptor.route.body.kind === 'json' && descriptor.route.body.optional === true
  if (optional && bytes === 0) return { outcome: 'read', descriptor, payload: NOTHING }
  const json = reader.end()
  if (handshake) return isInfoEnvelope(json) ? { outcome: 'read', descriptor, payload: NOTHING } : refuse('route-unknown')
  if (json.outcome === 'refused') return json
  const checked = checkBody(descriptor.route, json.value, parts.bodies)
  if (checked.outcome === 'refused') return checked
  parts.metrics.dropped('body-key', checked.dropped.length)
  checked.dropped.forEach(parts.onDropped)
  const { threadId, body } = checked
  const large = bytes > LARGE_BODY
  if (large) await setImmediate()
  const text = JSON.stringify(body)
  if (large) await setImmediate()
  const written = Buffer.from(text)
  if (large) await setImmediate()
  // Some numbers grow when they are written anew; the limit holds for what is sent, too.
  if (written.length > most) return refuse('body-too-large')
  return {
    outcome: 'read',
    descriptor: threadId === undefined ? descriptor : { ...descriptor, ids: { ...descriptor.ids, threadId } },
    payload: { kind: 'json', bytes: written, name: body['name'] },
  }
}

function isInfoEnvelope(json: JsonReading): boolean {
  return json.outcome === 'read' && json.value['method'] === 'info'
}

/** Reads what goes along with a request and checks it against its route: JSON into one reading, recordings as they come. */
import type { Readable } from 'node:stream'
import {
  checkIds,
  isBodyOptional,
  MAX_TOP_MEMBERS,
  NARROWED,
  passingBody,
  passingInSteps,
  type BodyPolicy,
} from '../../core/route/bodies.ts'
import type { RouteDescriptor } from '../../core/route/classify.ts'
import { admitEnvelope, type EnvelopeRules } from '../../core/route/envelope.ts'
import { isObject, makeJsonReader, type Json, type JsonObject, type JsonSource } from '../../core/json/read.ts'
import type { SteppedReading } from '../../core/json/read-in-steps.ts'
import { memberTexts, writeAnew } from '../../core/json/write.ts'
import type { MemberTexts } from '../../core/json/member-texts.ts'
import { writeInSteps } from '../../core/json/write-in-steps.ts'
import { isRefusal, refuse, type Reason, type Refusal } from '../../core/reasons.ts'
import type { Route } from '../../core/route/routes.ts'
import type { RuntimeFacts } from '../../core/route/transport.ts'
import type { Metrics } from '../../observe/metrics.ts'
import { largestReadable, readingCost } from './body-memory.ts'
import { readRecording } from './recording.ts'
import { bodyForm, boundedBody, hasBody, holdBody, type ArrivingBody, type HeldBody, type SharedBudget } from './request-body.ts'
import { inTurn, inTurns } from './turns.ts'

/**
 * What goes along with a permit: a JSON body that was checked (its bytes, and what a thread is called or become by it), or a
 * recording that streams through.
 */
export type Payload =
  | { readonly kind: 'none' }
  | {
      readonly kind: 'json'
      /** Of a large one in pieces. */
      readonly bytes: Buffer | readonly Uint8Array[]
      readonly name: Json | undefined
      readonly archived: Json | undefined
    }
  | { readonly kind: 'stream'; readonly type: string; readonly length: string | undefined; readonly body: Readable }
  /** A JSON body for the gateway itself, whole: what is strange in it is refused and not dropped. */
  | { readonly kind: 'own'; readonly body: JsonObject }

export interface PayloadParts {
  readonly limits: {
    readonly body: number
    readonly runBody: number
    /** How many members an object in a body may have. */
    readonly bodyMembers: number
  }
  /** Of the bytes of all bodies. */
  readonly budget: SharedBudget
  /** Of what reading them takes. */
  readonly reading: SharedBudget
  /** Told each name that did not pass. */
  readonly onDropped: (name: string) => void
  readonly metrics: Metrics
}

/** A request's body, read; what of it passes is for the decision to say. */
export interface ReadBody {
  readonly outcome: 'read'
  /** The descriptor, with the thread that the body names. */
  readonly descriptor: RouteDescriptor
  /**
   * Makes the payload of it.
   * @param policy what passes
   * @param most the bound of what is sent, in bytes
   */
  readonly write: (policy: BodyPolicy, most: number) => Payload | Refusal | Promise<Payload | Refusal>
  /** Lets go of what was read, once it is written for the last time: an upstream may take long to answer. */
  readonly forget: () => void
  /** Lets go of everything. */
  readonly release: () => void
}

const NOTHING: Payload = { kind: 'none' }

/** The bytes of a body that is larger are not held beside its text. */
const LARGE_BODY = 256 * 1024

/**
 * Reads what a request brings along, as its route allows.
 * @param upstream what it is for: a single-route upstream takes no multipart
 * @param mostOf the bound of it, in bytes
 * @returns what it names and how it is written anew, or a refusal: 415, 413, 400 or 503
 */
export function readPayload(
  parts: PayloadParts,
  descriptor: RouteDescriptor,
  upstream: RuntimeFacts,
  mostOf: () => number,
  arriving: ArrivingBody,
): ReadBody | Refusal | Promise<ReadBody | Refusal> {
  const { route } = descriptor
  const { message, lines, onWanted } = arriving
  const missing = route.body.kind === 'recording' ? 'media-type-unsupported' : 'body-not-json'
  if (!hasBody(lines)) return without(descriptor, missing)
  if (route.body.kind === 'none') return refuse('body-unexpected')
  const most = mostOf()
  const form = bodyForm(lines)
  if (isRefusal(form)) return form
  if (form.form === 'json') {
    return withJson(parts, most, arriving, NARROWED, (reading, bytes) => {
      // A chunked body may turn out to be empty.
      if (bytes === 0 && isBodyOptional(descriptor.route)) return without(descriptor, missing)
      return reading.outcome === 'refused' ? reading : checked(parts, descriptor, reading, bytes)
    })
  }
  if (route.body.kind !== 'recording') return refuse('media-type-unsupported')
  if (upstream.transport === 'single-route') {
    return withRecording(parts, descriptor, form.type, most, arriving)
  }
  const length = lines.get('content-length')?.[0]
  if (Number(length ?? 0) > most) return refuse('body-too-large')
  let isBegun = false
  return {
    outcome: 'read',
    descriptor,
    write: (_policy, atMost) => {
      // It is read once: by the rules that were active when that began.
      if (isBegun) return refuse('rules-changed')
      if (Number(length ?? 0) > atMost) return refuse('body-too-large')
      isBegun = true
      onWanted()
      return { kind: 'stream', type: form.type, length, body: boundedBody(message, atMost) }
    },
    forget: () => {},
    release: () => {},
  }
}

/** The objects in an envelope of which the members are wanted one by one. */
const ENVELOPED = ['body', ...NARROWED.map((path) => `body/${path}`)]

/**
 * Reads an envelope, and what it brings along for what it asks.
 * @param most the bound of it, in bytes, whatever it asks
 * @param rules what is asked of whoever sends it
 * @returns the same as readPayload, and 404 for what is no envelope
 */
export async function readEnveloped(
  parts: PayloadParts,
  most: number,
  rules: EnvelopeRules,
  arriving: ArrivingBody,
): Promise<ReadBody | Refusal> {
  if (!hasBody(arriving.lines)) return refuse('route-unknown')
  const form = bodyForm(arriving.lines)
  // What is no JSON is no envelope, and nothing else is served on the base path.
  if (isRefusal(form) || form.form !== 'json') return refuse('route-unknown')
  return withJson(parts, most, arriving, ENVELOPED, (reading, bytes) => {
    if (bytes === 0) return refuse('route-unknown')
    if (reading.outcome === 'refused') return reading
    const envelope = admitEnvelope(reading.value, bytes, rules)
    if (envelope.outcome === 'refused') return envelope
    const { descriptor, body } = envelope
    noteDropped(parts, envelope.dropped)
    parts.metrics.dropped('query-name', envelope.droppedQueryNames)
    if (body === undefined) return without(descriptor, 'body-not-object')
    // The runtime takes a string for JSON that is written in it, and would read what nobody has checked (runtime-behaviour.md, "Single-route transport").
    if (!isObject(body)) return refuse('body-not-object')
    if ('texts' in reading) {
      const texts = reading.texts.get('body')
      return checked(parts, descriptor, { value: body, texts: texts instanceof Map ? (texts as MemberTexts) : NO_TEXTS }, bytes)
    }
    return checked(
      parts,
      descriptor,
      { value: body, text: memberTexts(reading.text).get('body') ?? '', asWritten: true, bytes: null },
      bytes,
    )
  })
}

const NO_TEXTS: MemberTexts = new Map()

/** Holds a recording that has to go into an envelope. */
async function withRecording(
  parts: PayloadParts,
  descriptor: RouteDescriptor,
  type: string,
  most: number,
  arriving: ArrivingBody,
): Promise<ReadBody | Refusal> {
  const recording = await readRecording(type, arriving, most, parts.budget.of(arriving.caller()))
  if (recording.outcome === 'refused') return recording
  const { value, texts, bytes, release } = recording
  return guarded(parts, arriving.caller(), { bytes, release }, 0, () => checked(parts, descriptor, { value, texts }, bytes))
}

/** What comes of a request that brings nothing along. */
function without(descriptor: RouteDescriptor, missing: Reason): ReadBody | Refusal {
  if (!isBodyOptional(descriptor.route)) return refuse(missing)
  return { outcome: 'read', descriptor, write: () => NOTHING, forget: () => {}, release: () => {} }
}

/** A JSON body that was read at once. */
interface WholeSource extends JsonSource {
  /** Its bytes as they came; null where they are not held beside the text. */
  readonly bytes: readonly Buffer[] | null
}

/** A JSON body that was read: a large one in steps. */
type BodySource = WholeSource | Omit<SteppedReading, 'outcome'>

/** A payload before somebody has said who lets it go. */
type Made = Omit<ReadBody, 'release'>

/** Takes what reading a body takes. @returns what gives it back, once; or a refusal: 503, or 413 where it can never be there */
function takeReading({ reading }: PayloadParts, caller: string, bytes: number, values: number): (() => void) | Refusal {
  let cost = readingCost(bytes, values)
  if (cost > reading.most) return refuse('body-too-large')
  const share = reading.of(caller)
  if (!share.take(cost)) return refuse('bodies-budget-exhausted')
  return () => {
    share.give(cost)
    cost = 0
  }
}

/** Holds a JSON body while it is made into a payload; what is refused is held no longer. */
async function withJson(
  parts: PayloadParts,
  most: number,
  arriving: ArrivingBody,
  opened: readonly string[],
  make: (reading: Refusal | (BodySource & { readonly outcome: 'read' }), bytes: number) => Made | Refusal,
): Promise<ReadBody | Refusal> {
  const reader = makeJsonReader({ top: MAX_TOP_MEMBERS, inner: parts.limits.bodyMembers })
  const pieces: Buffer[] = []
  let length = 0
  const caller = arriving.caller()
  const budget = parts.budget.of(caller)
  const held = await holdBody(arriving, Math.min(most, largestReadable(parts.reading.most)), budget, (piece) => {
    length += piece.length
    if (length <= LARGE_BODY) pieces.push(piece)
    else pieces.length = 0
    return reader.push(piece)
  })
  if (isRefusal(held)) return held
  return guarded(parts, caller, held, reader.values(), () => {
    if (reader.isLarge()) return inTurns(reader.inSteps(opened)).then((reading) => make(reading, held.bytes))
    return inTurn(() => {
      const reading = reader.end()
      const bytes = length <= LARGE_BODY ? pieces : null
      return make(reading.outcome === 'refused' ? reading : { ...reading, bytes }, held.bytes)
    })
  })
}

/** Reads what is held; it is held no longer if that fails. @param values about how many there are in it */
async function guarded(
  parts: PayloadParts,
  caller: string,
  held: HeldBody,
  values: number,
  make: () => Made | Refusal | Promise<Made | Refusal>,
): Promise<ReadBody | Refusal> {
  const reading = takeReading(parts, caller, held.bytes, values)
  if (typeof reading !== 'function') {
    held.release()
    return reading
  }
  const release = (): void => {
    reading()
    held.release()
  }
  let read: Made | Refusal | undefined
  try {
    const made = make()
    // What is read at once waits for nobody.
    read = made instanceof Promise ? await made : made
  } finally {
    if (read?.outcome !== 'read') release()
  }
  if (read.outcome === 'refused') return read
  const { forget } = read
  return {
    ...read,
    forget() {
      forget()
      reading()
    },
    release,
  }
}

/** Checks the ids of a JSON body, which is written anew when it is known what of it passes. */
function checked(parts: PayloadParts, descriptor: RouteDescriptor, source: BodySource, bytes: number): Made | Refusal {
  const ids = checkIds(descriptor, source.value)
  if (ids.outcome === 'refused') return ids
  let kept: BodySource | null = source
  let isNoted = false
  const note = (dropped: readonly string[]): void => {
    if (!isNoted) noteDropped(parts, dropped)
    isNoted = true
  }
  return {
    outcome: 'read',
    descriptor: ids.descriptor,
    forget: () => (kept = null),
    write(policy, most) {
      if (kept === null) throw new Error('a body is to be written that was let go of')
      const { value } = kept
      if (bytes > most) return refuse('body-too-large')
      if (descriptor.route.own === true) return { kind: 'own', body: value }
      if ('texts' in kept) return writtenInTurns(note, descriptor.route, kept, policy, most)
      const source = kept
      return inTurn(() => {
        const { body, dropped } = passingBody(descriptor.route, value, policy)
        note(dropped)
        const written = bytesOf(writeAnew(body, source), source)
        return payloadOf(body, written, written.length, most)
      })
    },
  }
}

/** The payload of a large body: others have their turn between the steps. */
async function writtenInTurns(
  note: (dropped: readonly string[]) => void,
  route: Route,
  source: Omit<SteppedReading, 'outcome'>,
  policy: BodyPolicy,
  most: number,
): Promise<Payload | Refusal> {
  const { body, dropped } = await inTurns(passingInSteps(route, source.value, policy))
  note(dropped)
  const pieces = await inTurns(writeInSteps(body, source))
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  return payloadOf(body, pieces, length, most)
}

/** What came is sent as it came where it would be written just so. */
function bytesOf(text: string, source: WholeSource): Buffer {
  if (text !== source.text || source.bytes === null) return Buffer.from(text)
  const [only, ...more] = source.bytes
  return only !== undefined && more.length === 0 ? only : Buffer.concat(source.bytes)
}

/** Some numbers grow when they are written anew; the limit holds for what is sent, too. */
function payloadOf(body: JsonObject, bytes: Buffer | readonly Uint8Array[], length: number, most: number): Payload | Refusal {
  if (length > most) return refuse('body-too-large')
  return { kind: 'json', bytes, name: body['name'], archived: body['archived'] }
}

/** So many names of one body are told: the log says each of a bounded number once. */
const NAMES_TOLD = 100

function noteDropped({ metrics, onDropped }: PayloadParts, names: readonly string[]): void {
  metrics.dropped('body-key', names.length)
  names.slice(0, NAMES_TOLD).forEach(onDropped)
}

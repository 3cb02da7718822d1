/** Reads the body of a request, as much of it as a rule may allow, and checks it against its route. */
import type { IncomingMessage } from 'node:http'
import { mostBody, mostBodyOfAny } from '../../core/decide/decide.ts'
import { RuleMatch, type Rules } from '../../core/decide/rules.ts'
import {
  checkIds,
  configuredBody,
  isBodyOptional,
  MAX_TOP_MEMBERS,
  NARROWED,
  passingBody,
  passingInSteps,
  type BodyPolicy,
} from '../../core/route/bodies.ts'
import type { RouteDescriptor } from '../../core/route/classify.ts'
import { admitEnvelope, type EnvelopeRules } from '../../core/route/envelope.ts'
import { isObject, makeJsonReader, type JsonObject, type JsonSource } from '../../core/json/read.ts'
import type { SteppedReading } from '../../core/json/read-in-steps.ts'
import { memberTexts, writeAnew } from '../../core/json/write.ts'
import type { MemberTexts } from '../../core/json/member-texts.ts'
import { writeInSteps } from '../../core/json/write-in-steps.ts'
import { refuse, type Reason, type Refusal } from '../../core/reasons.ts'
import type { Route } from '../../core/route/routes.ts'
import type { RuntimeFacts } from '../../core/route/transport.ts'
import type { RequestMetrics } from '../../observe/metrics.ts'
import {
  largestReadable,
  readingCost,
  bodyForm,
  boundedBody,
  hasBody,
  holdBody,
  type ArrivingBody,
  type HeldBody,
  type SharedBudget,
} from './request-body.ts'
import { readRecording } from './audio-recording.ts'
import { admit } from './classification.ts'
import { inTurn, inTurns } from './event-loop-turns.ts'
import type { Classified, Payload, ReadBody } from './stages.ts'

export interface PayloadParts {
  readonly limits: {
    readonly body: number
    readonly runBody: number
    /** The most members of one object in a body. */
    readonly bodyMembers: number
  }
  readonly budget: SharedBudget
  readonly reading: SharedBudget
  readonly onDropped: (name: string) => void
  readonly metrics: RequestMetrics
}

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

const NOTHING: Payload = { kind: 'none' }

/** The gateway does not keep the bytes of a larger body beside its text. */
const LARGE_BODY = 256 * 1024

/** @returns a refusal: 415, 413, 400 or 503. A single-route upstream takes no multipart. */
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
  if ('outcome' in form) return form
  if (form.form === 'json') {
    return withJson(parts, most, arriving, NARROWED, (reading, bytes, hold) => {
      // A chunked body may turn out to be empty.
      if (bytes === 0 && isBodyOptional(descriptor.route)) return without(descriptor, missing, hold)
      return reading.outcome === 'refused' ? reading : checked(parts, descriptor, reading, bytes, hold)
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
      // A stream is read once, by the rules that were active when the reading began.
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

const ENVELOPED = ['body', ...NARROWED.map((path) => `body/${path}`)]

/**
 * @param most in bytes, whatever the envelope asks for
 * @returns as readPayload; 404 for a body that is not an envelope
 */
export async function readEnveloped(
  parts: PayloadParts,
  most: number,
  rules: EnvelopeRules,
  arriving: ArrivingBody,
): Promise<ReadBody | Refusal> {
  if (!hasBody(arriving.lines)) return refuse('route-unknown')
  const form = bodyForm(arriving.lines)
  // A body that is not JSON is not an envelope, and the base path serves nothing else.
  if ('outcome' in form || form.form !== 'json') return refuse('route-unknown')
  return withJson(parts, most, arriving, ENVELOPED, (reading, bytes, hold) => {
    if (bytes === 0) return refuse('route-unknown')
    if (reading.outcome === 'refused') return reading
    const envelope = admitEnvelope(reading.value, bytes, rules)
    if (envelope.outcome === 'refused') return envelope
    const { descriptor, body } = envelope
    noteDropped(parts, envelope.dropped)
    parts.metrics.dropped('query-name', envelope.droppedQueryNames)
    if (body === undefined) return without(descriptor, 'body-not-object', hold)
    // The runtime parses a string body as JSON, which was not checked (runtime-behaviour.md, "Single-route transport").
    if (!isObject(body)) return refuse('body-not-object')
    if ('texts' in reading) {
      const texts = reading.texts.get('body')
      const own = { value: body, texts: texts instanceof Map ? (texts as MemberTexts) : NO_TEXTS }
      return checked(parts, descriptor, own, bytes, hold)
    }
    const own = { value: body, text: memberTexts(reading.text).get('body') ?? '', asWritten: true, bytes: null }
    return checked(parts, descriptor, own, bytes, hold)
  })
}

const NO_TEXTS: MemberTexts = new Map()

/** The gateway holds the recording whole: it has to go into an envelope. */
async function withRecording(
  parts: PayloadParts,
  descriptor: RouteDescriptor,
  type: string,
  most: number,
  arriving: ArrivingBody,
): Promise<ReadBody | Refusal> {
  const recording = await readRecording(type, arriving, most, parts.budget.of(arriving.caller))
  if (recording.outcome === 'refused') return recording
  const { value, texts, bytes } = recording
  const hold = takeReading(parts, arriving.caller, recording, 0)
  if ('outcome' in hold) return hold
  let body: ReadBody | Refusal | undefined
  try {
    return (body = checked(parts, descriptor, { value, texts }, bytes, hold))
  } finally {
    if (body?.outcome !== 'read') hold.release()
  }
}

const NOTHING_HELD: Hold = { forget: () => {}, release: () => {} }

function without(descriptor: RouteDescriptor, missing: Reason, hold = NOTHING_HELD): ReadBody | Refusal {
  if (!isBodyOptional(descriptor.route)) return refuse(missing)
  return { outcome: 'read', descriptor, write: () => NOTHING, ...hold }
}

interface WholeSource extends JsonSource {
  /** The bytes as they came; null where the gateway does not keep them beside the text. */
  readonly bytes: readonly Buffer[] | null
}

type BodySource = WholeSource | Omit<SteppedReading, 'outcome'>

/** Gives the memory of a body back: `forget` what reading it takes, `release` all of it. Each counts once. */
type Hold = Pick<ReadBody, 'forget' | 'release'>

/** @returns 503, or 413 where the body can never fit. `values` is about how many JSON values the body has. */
function takeReading({ reading }: PayloadParts, caller: string, held: HeldBody, values: number): Hold | Refusal {
  let cost = readingCost(held.bytes, values)
  const share = reading.of(caller)
  if (cost > reading.most || !share.take(cost)) {
    held.release()
    return refuse(cost > reading.most ? 'body-too-large' : 'bodies-budget-exhausted')
  }
  const forget = (): void => {
    share.give(cost)
    cost = 0
  }
  return {
    forget,
    release() {
      forget()
      held.release()
    },
  }
}

type Read = BodySource & { readonly outcome: 'read' }

async function withJson(
  parts: PayloadParts,
  most: number,
  arriving: ArrivingBody,
  opened: readonly string[],
  make: (reading: Refusal | Read, bytes: number, hold: Hold) => ReadBody | Refusal,
): Promise<ReadBody | Refusal> {
  const reader = makeJsonReader({ top: MAX_TOP_MEMBERS, inner: parts.limits.bodyMembers })
  const pieces: Buffer[] = []
  let length = 0
  const { caller } = arriving
  const budget = parts.budget.of(caller)
  const held = await holdBody(arriving, Math.min(most, largestReadable(parts.reading.most)), budget, (piece) => {
    length += piece.length
    if (length <= LARGE_BODY) pieces.push(piece)
    else pieces.length = 0
    return reader.push(piece)
  })
  if ('outcome' in held) return held
  const hold = takeReading(parts, caller, held, reader.values())
  if ('outcome' in hold) return hold
  const readShort = (): ReadBody | Refusal => {
    const reading = reader.end()
    const bytes = length <= LARGE_BODY ? pieces : null
    return make(reading.outcome === 'refused' ? reading : { ...reading, bytes }, held.bytes, hold)
  }
  let body: ReadBody | Refusal | undefined
  try {
    if (reader.isLarge()) return (body = make(await inTurns(reader.inSteps(opened)), held.bytes, hold))
    const short = inTurn(readShort)
    return (body = short instanceof Promise ? await short : short)
  } finally {
    if (body?.outcome !== 'read') hold.release()
  }
}

function checked(
  parts: PayloadParts,
  descriptor: RouteDescriptor,
  source: BodySource,
  bytes: number,
  { forget, release }: Hold,
): ReadBody | Refusal {
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
    forget() {
      kept = null
      forget()
    },
    release,
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
        const written = bytesOf(body, source)
        return payloadOf(body, written, written.length, most)
      })
    },
  }
}

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

/** Sends the bytes as they came where the gateway would write the same text. */
function bytesOf(body: JsonObject, source: WholeSource): Buffer {
  if (body !== source.value || !source.asWritten) return Buffer.from(writeAnew(body, source))
  if (source.bytes === null) return Buffer.from(source.text)
  const [only, ...more] = source.bytes
  return only !== undefined && more.length === 0 ? only : Buffer.concat(source.bytes)
}

/** Some numbers grow when they are written again, so the limit applies to what is sent, too. */
function payloadOf(body: JsonObject, bytes: Buffer | readonly Uint8Array[], length: number, most: number): Payload | Refusal {
  if (length > most) return refuse('body-too-large')
  return { kind: 'json', bytes, name: body['name'], archived: body['archived'] }
}

/** The most names of one body that are reported: the log reports each of a bounded number once. */
const NAMES_TOLD = 100

function noteDropped({ metrics, onDropped }: PayloadParts, names: readonly string[]): void {
  if (names.length === 0) return
  metrics.dropped('body-key', names.length)
  names.slice(0, NAMES_TOLD).forEach(onDropped)
}

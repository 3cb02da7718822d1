/** Reads the body of a request, as much of it as a rule may allow, and checks it against its route. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { mostBody, mostBodyOfAny } from '../../core/decide/decide.ts'
import type { RuleMatch, Rules } from '../../core/decide/rules.ts'
import {
  checkIds,
  type AuditedContent,
  configuredBody,
  isBodyOptional,
  MAX_TOP_MEMBERS,
  NARROWED,
  passingBody,
  passingInSteps,
  type BodyPolicy,
  type Passing,
  type PassingBody,
} from '../../core/route/bodies.ts'
import { claimedHistory } from '../../core/route/claimed-history.ts'
import type { RouteDescriptor } from '../../core/route/classify.ts'
import { admitEnvelope, type EnvelopeRules } from '../../core/route/envelope.ts'
import {
  isObject,
  makeJsonReader,
  type JsonObject,
  type JsonReader,
  type JsonSource,
  type SteppedSource,
} from '../../core/json/read.ts'
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
  holdBody,
  type ArrivingBody,
  type HeldBody,
  type SharedBudget,
} from './request-body.ts'
import { readRecording } from './audio-recording.ts'
import { admit } from './classification.ts'
import { firstTurn, inTurn, inTurns } from './event-loop-turns.ts'
import type { Classified, Payload, ReadBody } from './stages.ts'

export type DroppedKind = 'body-key' | 'nested-key'

export interface PayloadParts {
  readonly limits: {
    readonly body: number
    readonly runBody: number
    /** The most members of one object in a body. */
    readonly bodyMembers: number
  }
  readonly budget: SharedBudget
  readonly reading: SharedBudget
  readonly onDropped: (kind: DroppedKind, name: string) => void
  readonly metrics: RequestMetrics
  readonly audit: AuditedContent
}

export type ReadRequestBody = (request: Classified, message: IncomingMessage) => ReadBody | Refusal | Promise<ReadBody | Refusal>

export function makeReadBody(parts: PayloadParts, rules: Rules): ReadRequestBody {
  const configured = (route: Route): number => configuredBody(parts.limits, route)
  return (request, message) => {
    const { exchange, binding, caller, upstream, route } = request
    const { lines } = exchange.head
    // HTTP/1.0 has no interim answer (RFC 9110 §10.1.1).
    const waits = lines.has('expect') && message.httpVersion !== '1.0'
    const onWanted = waits ? (): void => exchange.response.writeContinue() : null
    const arriving = { message, lines, caller: caller.key, onWanted, timing: exchange.timing }
    if (route !== null) {
      const { descriptor, match } = route
      const most = mostBody(match, configuredBody(parts.limits, descriptor.route))
      const reading = readPayload(parts, descriptor, upstream, most, arriving)
      if (descriptor.route.agent !== 'body') return reading
      return reading instanceof Promise ? reading.then((body) => matched(request, body, rules)) : matched(request, reading, rules)
    }
    let match: RuleMatch | null = null
    const envelope = {
      admit(asked: RouteDescriptor): Refusal | null {
        const admitted = admit(request, asked, rules)
        if (admitted.outcome === 'refused') return admitted
        match = admitted
        return null
      },
      mostOf: (asked: RouteDescriptor) => (match === null ? 0 : mostBody(match, configured(asked.route))),
    }
    // The gateway reads no envelope beyond what the caller may send on some route, or beyond a small body.
    const most = Math.max(parts.limits.body, mostBodyOfAny(caller.principal, rules, binding.facts, configured))
    return readEnveloped(parts, most, envelope, arriving).then((body) => {
      if (body.outcome === 'refused') return body
      if (match === null) throw new Error('an envelope was read without its rules')
      return { ...body, match }
    })
  }
}

/** Matches the rules about the agent that the body names. */
function matched(request: Classified, body: ReadBody | Refusal, rules: Rules): ReadBody | Refusal {
  if (body.outcome === 'refused') return body
  const match = admit(request, body.descriptor, rules)
  if (match.outcome !== 'refused') return { ...body, match }
  body.release()
  return match
}

const NOTHING: Payload = { kind: 'none' }

/** @returns a refusal: 415, 413, 400 or 503. A single-route upstream takes no multipart. */
export function readPayload(
  parts: PayloadParts,
  descriptor: RouteDescriptor,
  upstream: RuntimeFacts,
  most: number,
  arriving: ArrivingBody,
): ReadBody | Refusal | Promise<ReadBody | Refusal> {
  const { route } = descriptor
  const { message, lines, onWanted } = arriving
  const missing = route.body.kind === 'recording' ? 'media-type-unsupported' : 'body-not-json'
  const form = bodyForm(lines)
  if (!('outcome' in form) && form.form === 'none') return without(descriptor, missing)
  if (route.body.kind === 'none') return refuse('body-unexpected')
  if ('outcome' in form) return form
  if (form.form === 'json') return withJson(parts, most, arriving, descriptor, BODY)
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
      onWanted?.()
      return { kind: 'stream', type: form.type, length, body: boundedBody(message, atMost) }
    },
    forget: () => {},
    release: () => {},
  }
}

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
  const form = bodyForm(arriving.lines)
  // A body that is not JSON is not an envelope, and the base path serves nothing else.
  if ('outcome' in form || form.form !== 'json') return refuse('route-unknown')
  return withJson(parts, most, arriving, rules, ENVELOPE)
}

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
  const hold = takeReading(parts, arriving.caller, recording, 0)
  if ('outcome' in hold) return hold
  let body: ReadBody | Refusal | undefined
  try {
    const { value, texts } = recording
    return (body = checkBody(parts, descriptor, { outcome: 'read', value, texts, asWritten: true, bytes: null }, hold))
  } finally {
    if (body?.outcome !== 'read') hold.release()
  }
}

function without(descriptor: RouteDescriptor, missing: Reason, hold: Partial<Hold> = {}): ReadBody | Refusal {
  if (!isBodyOptional(descriptor.route)) return refuse(missing)
  const { forget = () => {}, release = () => {} } = hold
  return { outcome: 'read', descriptor, write: () => NOTHING, forget, release }
}

/** The bytes as they came; null of a body within another one. */
interface Arrived {
  readonly bytes: readonly Uint8Array[] | null
}

type WholeSource = JsonSource & Arrived & { readonly outcome: 'read' }

type InSteps = SteppedSource & Arrived

type BodySource = WholeSource | InSteps

/** What the gateway holds of a body. */
interface Hold {
  readonly bytes: number
  /** The body as it was read; null once it is released. */
  source: BodySource | null
  /** Bodies are written once for each decision; dropped fields are reported once. */
  isReported: boolean
  /** Gives back the memory that reading takes, once. */
  readonly forget: () => void
  /** Gives back all memory, once. */
  readonly release: () => void
}

/** @returns 503, or 413 where the body can never fit. `values` is about how many JSON values the body has. */
function takeReading({ reading }: PayloadParts, caller: string, held: HeldBody, values: number): Hold | Refusal {
  const { bytes, budget } = held
  let { taken } = held
  let cost = readingCost(bytes, values)
  const share = reading.of(caller)
  if (cost > reading.most || !share.take(cost)) {
    budget.give(taken)
    return refuse(cost > reading.most ? 'body-too-large' : 'bodies-budget-exhausted')
  }
  const hold: Hold = {
    bytes,
    source: null,
    isReported: false,
    forget: () => {
      hold.source = null
      share.give(cost)
      cost = 0
    },
    release: () => {
      hold.forget()
      budget.give(taken)
      taken = 0
    },
  }
  return hold
}

/** What a JSON body is read as. */
interface JsonForm<About> {
  /** Paths of the objects whose members may be forwarded one by one. */
  readonly opened: readonly string[]
  readonly check: (parts: PayloadParts, about: About, reading: Refusal | BodySource, hold: Hold) => ReadBody | Refusal
}

const BODY: JsonForm<RouteDescriptor> = { opened: NARROWED, check: checkBody }

const ENVELOPE: JsonForm<EnvelopeRules> = { opened: ['body', ...NARROWED.map((path) => `body/${path}`)], check: checkEnvelope }

async function withJson<About>(
  parts: PayloadParts,
  most: number,
  arriving: ArrivingBody,
  about: About,
  { opened, check }: JsonForm<About>,
): Promise<ReadBody | Refusal> {
  const reader = makeJsonReader({ top: MAX_TOP_MEMBERS, inner: parts.limits.bodyMembers })
  const { caller } = arriving
  const budget = parts.budget.of(caller)
  const held = await holdBody(arriving, Math.min(most, largestReadable(parts.reading.most)), budget, reader.push)
  if ('outcome' in held) return held
  const hold = takeReading(parts, caller, held, reader.shape.values)
  if ('outcome' in hold) return hold
  let body: ReadBody | Refusal | undefined
  try {
    const { bytes } = reader
    if (reader.isLarge()) {
      await firstTurn(held.bytes)
      return (body = await readInTurns(reader, opened, (reading) => check(parts, about, reading, hold)))
    }
    const short = inTurn(() => {
      const reading = reader.end()
      return check(parts, about, reading.outcome === 'refused' ? reading : { ...reading, bytes }, hold)
    })
    return (body = short instanceof Promise ? await short : short)
  } finally {
    if (body?.outcome !== 'read') hold.release()
  }
}

/** Runs after `firstTurn`, in a frame of its own. */
async function readInTurns(
  reader: JsonReader,
  opened: readonly string[],
  check: (reading: Refusal | InSteps) => ReadBody | Refusal,
): Promise<ReadBody | Refusal> {
  const reading = await inTurns(reader.inSteps(opened))
  return check(reading.outcome === 'refused' ? reading : { ...reading, bytes: reader.bytes })
}

function checkEnvelope(parts: PayloadParts, rules: EnvelopeRules, reading: Refusal | BodySource, hold: Hold): ReadBody | Refusal {
  if (hold.bytes === 0) return refuse('route-unknown')
  if (reading.outcome === 'refused') return reading
  const envelope = admitEnvelope(reading.value, hold.bytes, rules)
  if (envelope.outcome === 'refused') return envelope
  const { descriptor, body } = envelope
  reportDropped(parts, 'body-key', envelope.dropped)
  parts.metrics.dropped('query-name', envelope.droppedQueryNames)
  if (body === undefined) return without(descriptor, 'body-not-object', hold)
  // The runtime parses a string body as JSON, which was not checked (runtime-behaviour.md, "Single-route transport").
  if (!isObject(body)) return refuse('body-not-object')
  if ('texts' in reading) {
    const texts = reading.texts.get('body')
    const own = texts instanceof Map ? (texts as MemberTexts) : NO_TEXTS
    return checkBody(parts, descriptor, { outcome: 'read', value: body, texts: own, asWritten: true, bytes: null }, hold)
  }
  const text = memberTexts(reading.text).get('body') ?? ''
  return checkBody(parts, descriptor, { outcome: 'read', value: body, text, asWritten: true, bytes: null }, hold)
}

const NO_TEXTS: MemberTexts = new Map()

function checkBody(
  parts: PayloadParts,
  descriptor: RouteDescriptor,
  reading: Refusal | BodySource,
  hold: Hold,
): ReadBody | Refusal {
  const { route } = descriptor
  // A chunked body may turn out to be empty.
  if (hold.bytes === 0 && isBodyOptional(route)) return without(descriptor, 'body-not-json', hold)
  if (reading.outcome === 'refused') return reading
  const isUnnamed = route.unknownThread === 'create' && reading.value['thread_id'] === undefined
  const source = isUnnamed ? withThreadNamed(reading) : reading
  const ids = checkIds(descriptor, source.value, parts.audit)
  if (ids.outcome === 'refused') return ids
  hold.source = source
  return {
    outcome: 'read',
    descriptor: isUnnamed ? { ...ids.descriptor, isNamedHere: true } : ids.descriptor,
    forget: hold.forget,
    release: hold.release,
    write(policy, most) {
      const { source } = hold
      if (source === null) throw new Error('a released body cannot be written')
      if (hold.bytes > most) return refuse('body-too-large')
      if (route.own === true) return { kind: 'own', body: source.value }
      if ('texts' in source) return writtenInTurns(parts, route, source, hold, policy, most)
      return inTurn(() => {
        const passing = passingBody(route, source.value, policy)
        if (passing.outcome === 'refused') return passing
        reportOnce(parts, hold, passing)
        const { body } = passing
        let bytes: readonly Uint8Array[]
        if (body !== source.value || !source.asWritten) bytes = [Buffer.from(writeAnew(body, source))]
        // Sends the bytes as they came where the gateway would write the same text.
        else bytes = source.bytes ?? [Buffer.from(source.text)]
        return payloadOf(route, body, policy, bytes, most)
      })
    },
  }
}

/** Names the new thread of a request that leaves the name to the server: it is the caller's before the server has it. */
function withThreadNamed(reading: BodySource): BodySource {
  return { ...reading, value: { ...reading.value, thread_id: randomUUID() }, asWritten: false }
}

async function writtenInTurns(
  parts: PayloadParts,
  route: Route,
  source: InSteps,
  hold: Hold,
  policy: Passing,
  most: number,
): Promise<Payload | Refusal> {
  const passing = await inTurns(passingInSteps(route, source.value, policy))
  if (passing.outcome === 'refused') return passing
  reportOnce(parts, hold, passing)
  const { body } = passing
  const isSame = body === source.value && source.asWritten && source.bytes !== null
  const pieces = isSame ? source.bytes : await inTurns(writeInSteps(body, source))
  return payloadOf(route, body, policy, pieces, most)
}

/** Some numbers grow when they are written again, so the limit applies to the sent bytes, too. */
function payloadOf(
  route: Route,
  body: JsonObject,
  { messages }: BodyPolicy,
  bytes: readonly Uint8Array[],
  most: number,
): Payload | Refusal {
  let length = 0
  for (const piece of bytes) length += piece.length
  if (length > most) return refuse('body-too-large')
  const claimed = messages.history === 'verify' ? claimedHistory(route, body) : null
  return { kind: 'json', bytes, name: body['name'], archived: body['archived'], claimed }
}

/** The most names of one body that are reported: the log reports each of a bounded number once. */
const NAMES_TOLD = 100

function reportDropped(
  { metrics, onDropped }: PayloadParts,
  kind: DroppedKind,
  names: readonly string[],
  count = names.length,
): void {
  if (count === 0) return
  metrics.dropped(kind, count)
  for (const name of names.slice(0, NAMES_TOLD)) onDropped(kind, name)
}

function reportOnce(parts: PayloadParts, hold: Hold, { dropped, droppedInside }: PassingBody): void {
  if (hold.isReported) return
  hold.isReported = true
  reportDropped(parts, 'body-key', dropped)
  reportDropped(parts, 'nested-key', [...droppedInside.names], droppedInside.count)
}

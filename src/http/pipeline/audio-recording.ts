/** Converts a multipart recording to a JSON recording (runtime-behaviour.md, "Single-route transport"). Base64 needs it whole. */
import type { MemberTexts } from '../../core/json/member-texts.ts'
import type { JsonObject } from '../../core/json/read.ts'
import { isRefusal, refuse, type Refusal } from '../../core/reasons.ts'
import type { Steps } from '../../core/json/steps.ts'
import { holdBody, type ArrivingBody, type BodyBudget, type HeldBody } from './request-body.ts'
import { inTurns } from './event-loop-turns.ts'

export interface Recording extends HeldBody {
  readonly outcome: 'read'
  readonly value: JsonObject
  /** In pieces, because the audio is long. */
  readonly texts: MemberTexts
}

/**
 * Base64 makes a recording longer by a third, so it may have three quarters of the bound of sent bodies.
 * @param most the bound of the body in bytes
 * @returns a refusal: 413, 503, or 400 for a form without exactly one part `audio` that is a file
 */
export async function readRecording(
  type: string,
  arriving: ArrivingBody,
  most: number,
  budget: BodyBudget,
): Promise<Recording | Refusal> {
  const pieces: Buffer[] = []
  const held = await holdBody(arriving, Math.floor((most * 3) / 4), budget, (piece) => {
    pieces.push(piece)
    return null
  })
  if (isRefusal(held)) return held
  const longer = Math.ceil((held.bytes * 4) / 3)
  if (!budget.take(longer)) {
    budget.give(held.taken)
    return refuse('bodies-budget-exhausted')
  }
  const taken = held.taken + longer
  const recording = await readForm(pieces.splice(0), held.bytes, type)
  if (recording !== null) return { outcome: 'read', ...recording, bytes: held.bytes, taken, budget }
  budget.give(taken)
  return refuse('body-no-recording')
}

/** A recording is one part; clients send a few more at most. Each part has a few lines before its content. */
const MAX_PARTS = 16
const MAX_PART_HEAD = 8 * 1024

/** The bytes that one step copies, searches or encodes. Base64 encodes three bytes at a time. */
const AT_ONCE = 3 * 64 * 1024

/** As the runtime reads forms. With two parts `audio`, two handlers could take different parts. */
async function readForm(pieces: Buffer[], length: number, type: string): Promise<Pick<Recording, 'value' | 'texts'> | null> {
  const form = await inTurns(shortened(pieces, length, /boundary="?([^"]*)"?$/.exec(type)?.[1] ?? ''))
  if (form === null) return null
  let audio: (File | string)[]
  try {
    // oxlint-disable-next-line typescript/no-deprecated -- advised against for forms without bound; this one is short
    audio = (await new Response(new Uint8Array(form.text), { headers: { 'content-type': type } }).formData()).getAll('audio')
  } catch {
    return null
  }
  const [file, ...more] = audio
  if (!(file instanceof File) || more.length > 0) return null
  // Anything else means that the reader found another content than was cut out, or has decoded it.
  const [nul, which, ...others] = Buffer.from(await file.arrayBuffer())
  const content = form.contents[which ?? -1]
  if (nul !== 0 || others.length > 0 || content === undefined) return null
  const audioTexts = await inTurns(base64(content))
  // Browsers may send no type. In JSON the runtime requires a known one (runtime-behaviour.md, "Routes").
  const mimeType = file.type === '' || file.type === 'application/octet-stream' ? 'audio/webm' : file.type
  return {
    value: { audio: audioTexts.reduce((text, piece) => text + piece, ''), mimeType, filename: file.name },
    texts: new Map([
      ['audio', ['"', ...audioTexts, '"']],
      ['mimeType', [JSON.stringify(mimeType)]],
      ['filename', [JSON.stringify(file.name)]],
    ]),
  }
}

/** A form in which two bytes replace each content: a NUL, which no boundary has, and the number of the part. */
interface ShortForm {
  readonly text: Buffer
  readonly contents: readonly Buffer[]
}

/** @returns null for a form with many parts or large heads: reading it would cost far more than its bytes */
function* shortened(pieces: Buffer[], length: number, boundary: string): Steps<ShortForm | null> {
  const bytes = yield* joined(pieces, length)
  const text: Buffer[] = []
  const contents: Buffer[] = []
  const first = yield* placeOf(`--${boundary}`, bytes, 0)
  if (first === -1) return null
  for (let at = first + 2; ;) {
    const end = at + boundary.length
    if (bytes.toString('latin1', end, end + 2) === '--') {
      text.push(bytes.subarray(at - 2, end + 2))
      return { text: Buffer.concat(text), contents }
    }
    const head = bytes.subarray(at - 2, at + MAX_PART_HEAD)
    const headEnd = head.indexOf('\r\n\r\n') + 4
    const from = at - 2 + headEnd
    // Undici finds the boundary without its hyphens, and then checks that they and a line break precede it.
    const next = yield* placeOf(boundary, bytes, from)
    if (contents.length === MAX_PARTS || headEnd < 4 || next < from + 4) return null
    text.push(head.subarray(0, headEnd), Buffer.from([0, contents.length]), bytes.subarray(next - 4, next - 2))
    contents.push(bytes.subarray(from, next - 4))
    at = next
  }
}

function* joined(pieces: Buffer[], length: number): Steps<Buffer> {
  const bytes = Buffer.allocUnsafeSlow(length)
  let filled = 0
  let copied = 0
  for (const piece of pieces) {
    filled += piece.copy(bytes, filled)
    copied += piece.length
    if (copied < AT_ONCE) continue
    copied = 0
    yield
  }
  return bytes
}

function* placeOf(text: string, bytes: Buffer, from: number): Steps<number> {
  for (let at = from; at < bytes.length; at += AT_ONCE) {
    const place = bytes.subarray(at, at + AT_ONCE + text.length - 1).indexOf(text, 0, 'latin1')
    if (place !== -1) return at + place
    yield
  }
  return -1
}

function* base64(bytes: Buffer): Steps<readonly string[]> {
  const texts: string[] = []
  for (let at = 0; at < bytes.length; at += AT_ONCE) {
    texts.push(bytes.toString('base64', at, at + AT_ONCE))
    yield
  }
  return texts
}

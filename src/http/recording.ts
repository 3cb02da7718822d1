/**
 * Makes the JSON recording of the single-route transport out of the multipart one that clients of routes send (contract
 * §1.3: `transcribe`): it has to be held whole, because the envelope carries it as base64.
 */
import type { JsonObject } from '../core/json.ts'
import { isRefusal, refuse, type Refusal } from '../core/reasons.ts'
import { holdBody, type ArrivingBody, type BodyBudget } from './request-body.ts'

/** A recording, read; `release` gives its bytes back to the budget. */
export interface Recording {
  readonly outcome: 'read'
  readonly value: JsonObject
  readonly bytes: number
  readonly release: () => void
}

/**
 * Reads it. Base64 makes it longer by a third, and what is sent is held to the same bound: it may have three quarters of that.
 * @param type the content type, with its boundary
 * @param most the bound of the body in bytes
 * @returns a refusal: 413, 503, or 400 for a form without exactly one part `audio`, which is a file
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
  let longer = Math.ceil((held.bytes * 4) / 3)
  if (!budget.take(longer)) {
    held.release()
    return refuse('bodies-budget-exhausted')
  }
  const release = (): void => {
    held.release()
    budget.give(longer)
    longer = 0
  }
  const value = await readForm(Buffer.concat(pieces.splice(0)), type)
  if (value !== null) return { outcome: 'read', value, bytes: held.bytes, release }
  release()
  return refuse('body-no-recording')
}

/** A recording is one part; clients send a few more at most. Each has a few lines before its content. */
const MAX_PARTS = 16
const MAX_PART_HEAD = 8 * 1024

/**
 * The file `audio` of a form, as the runtime reads forms: two readers of multipart agree on little else. With two parts of
 * that name, two handlers could take different ones.
 */
async function readForm(bytes: Buffer, type: string): Promise<JsonObject | null> {
  if (!isModest(bytes, type)) return null
  let audio: (File | string)[]
  try {
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- advised against for forms without bound; this one is held
    audio = (await new Response(new Uint8Array(bytes), { headers: { 'content-type': type } }).formData()).getAll('audio')
  } catch {
    return null
  }
  const [file, ...more] = audio
  if (!(file instanceof File) || more.length > 0) return null
  const audioText = Buffer.from(await file.arrayBuffer()).toString('base64')
  // Browsers that know no type send none, or this one; in JSON the runtime wants one that it knows (contract §1).
  const mimeType = file.type === '' || file.type === 'application/octet-stream' ? 'audio/webm' : file.type
  return { audio: audioText, mimeType, filename: file.name }
}

/** True for a form of few parts with small heads: reading any other would cost far more than its bytes. */
function isModest(bytes: Buffer, type: string): boolean {
  const boundary = `--${/boundary="?([^"]*)"?$/.exec(type)?.[1] ?? ''}`
  let parts = 0
  for (let at = bytes.indexOf(boundary); at !== -1; at = bytes.indexOf(boundary, at + 1)) {
    parts += 1
    const head = bytes.subarray(at, at + MAX_PART_HEAD)
    const isLast = head.subarray(boundary.length, boundary.length + 2).toString('latin1') === '--'
    if (parts > MAX_PARTS || (!isLast && !head.includes('\r\n\r\n'))) return false
  }
  return true
}

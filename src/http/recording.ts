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
 * Reads it.
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
  const held = await holdBody(arriving, most, budget, (piece) => {
    pieces.push(piece)
    return null
  })
  if (isRefusal(held)) return held
  const value = await readForm(Buffer.concat(pieces), type)
  if (value !== null) return { outcome: 'read', value, bytes: held.bytes, release: held.release }
  held.release()
  return refuse('body-no-recording')
}

/** A recording is one part; clients send a few more at most. */
const MAX_PARTS = 16

/**
 * The file `audio` of a form, as the runtime reads forms: two readers of multipart agree on little else. With two parts of
 * that name, two handlers could take different ones.
 */
async function readForm(bytes: Buffer, type: string): Promise<JsonObject | null> {
  if (countParts(bytes, type) > MAX_PARTS) return null
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

/** How often the boundary occurs, which is at least the number of parts. */
function countParts(bytes: Buffer, type: string): number {
  const boundary = `--${/boundary="?([^"]*)"?$/.exec(type)?.[1] ?? ''}`
  let parts = 0
  for (let at = bytes.indexOf(boundary); at !== -1 && parts <= MAX_PARTS; at = bytes.indexOf(boundary, at + 1)) parts += 1
  return parts
}

/**
 * Makes the JSON recording of the single-route transport out of the multipart one that clients of routes send (contract
 * §1.3: `transcribe`): it has to be held whole, because the envelope carries it as base64.
 */
import { Busboy } from '@fastify/busboy'
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
  const value = await readForm(pieces, type)
  if (value !== null) return { outcome: 'read', value, bytes: held.bytes, release: held.release }
  held.release()
  return refuse('body-no-recording')
}

/** A recording is one part; clients send a few more at most. */
const LIMITS = { parts: 16, headerPairs: 32 }

/** The file `audio` of a form; with two parts of that name, two readers could take different ones. */
function readForm(pieces: readonly Buffer[], type: string): Promise<JsonObject | null> {
  return new Promise((resolve) => {
    const refused = (): void => resolve(null)
    const found: JsonObject[] = []
    let named = 0
    const form = new Busboy({ headers: { 'content-type': type }, limits: LIMITS })
    form.on('file', (name, file, filename, _encoding, type) => {
      if (name === 'audio') named += 1
      const bytes: Buffer[] = []
      file.on('data', (chunk: Buffer) => void bytes.push(chunk))
      // A part that breaks off fails by itself, and would end the process if nobody listened.
      file.on('error', refused)
      file.on('end', () => {
        // As the runtime takes it in a form (contract §1): browsers that know no type say so.
        const mimeType = type === 'application/octet-stream' ? 'audio/webm' : type
        if (name === 'audio') found.push({ audio: Buffer.concat(bytes).toString('base64'), mimeType, filename })
      })
    })
    form.on('field', (name) => {
      if (name === 'audio') named += 1
    })
    form.on('partsLimit', refused)
    form.on('error', refused)
    form.on('finish', () => resolve(named === 1 ? (found[0] ?? null) : null))
    for (const piece of pieces) form.write(piece)
    form.end()
  })
}

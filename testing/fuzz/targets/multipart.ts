/**
 * Recordings that come as a form: the content type, a line, and then the body. What is read is one file that stands in the body as it
 * does in the JSON that is made of it; its memory is given back; and the type that is written has one reading.
 */
import assert from 'node:assert/strict'
import { headerLines, multipartType } from '../../../src/core/wire/headers.ts'
import { readRecording, type Recording } from '../../../src/http/pipeline/audio-recording.ts'
import type { Refusal } from '../../../src/core/reasons.ts'
import { makeBudget } from '../../../src/http/pipeline/request-body.ts'
import { arrivingMessage } from '../../support/arriving-message.ts'

// oxfmt-ignore
export const words = [
  'multipart/form-data; boundary=q7', 'multipart/form-data; boundary="q 7"', '\r\n', '\r\n\r\n', '--q7', '\r\n--q7\r\n', '\r\n--q7--\r\n', '--',
  'Content-Disposition: form-data; name="audio"; filename="a.webm"\r\n', 'Content-Disposition: form-data; name="x"\r\n', 'Content-Type: audio/webm\r\n',
  'Content-Type: ', 'name="audio"', 'filename="', "filename*=utf-8''a", 'name=audio', 'name="Audio"', 'Content-Transfer-Encoding: base64\r\n', '%22', '\\"', 'application/octet-stream',
]

const TYPE = 'multipart/form-data; boundary=q7\n'
const FILE = 'Content-Disposition: form-data; name="audio"; filename="a.webm"'
const part = (head: string, content: string): string => `--q7\r\n${head}\r\n\r\n${content}\r\n`

// oxfmt-ignore
export const seeds = [
  `${TYPE}${part(`${FILE}\r\nContent-Type: audio/webm`, 'abc')}--q7--\r\n`, `${TYPE}${part('Content-Disposition: form-data; name="x"', 'x')}${part(FILE, '\xff\0\r\n--c')}--q7--\r\n`, `multipart/form-data; boundary="q 7"\n--q 7\r\n${FILE}\r\n\r\nx\r\n--q 7--`,
  `${TYPE}${part(FILE, 'a')}${part(FILE, 'b')}--q7--\r\n`, `${TYPE}${part(FILE, 'a')}${part('Content-Disposition: form-data; name="audio"', 'b')}--q7--\r\n`, `${TYPE}${part('Content-Disposition: form-data; name="audio"', 'b')}--q7--\r\n`,
  `${TYPE}${part('Content-Disposition: form-data; name="x"', 'x').repeat(16)}${part(FILE, 'a')}--q7--\r\n`, `${TYPE}${part(FILE, 'a')}--q7--\r\n${part(FILE, 'b')}--q7--\r\n`, `${TYPE}preamble--q7\r\n${FILE}\r\n\r\na\r\n--q7--`,
  `${TYPE}${part(`${FILE}; filename*=utf-8''b\r\nContent-Type: application/octet-stream`, 'a')}--q7--\r\n`, `${TYPE}${part(`${FILE}\r\nContent-Transfer-Encoding: base64`, 'GkU=')}--q7--\r\n`, `${TYPE}${part(`${FILE}\r\nContent-Type: `, 'a')}--q7--\r\n`, `${TYPE}--q7\r\n${FILE}`, `${TYPE}--q7--\r\n`, 'Multipart/Form-Data ; Boundary=q7\n', 'multipart/form-data; boundary=q7; charset=x\n', 'text/plain\n',
]

const MOST = 64 * 1024
/** As the code that is fuzzed bounds them. */
const MOST_PARTS = 16
/** A parameter of a head (RFC 7578 §4.2), and the head of a part that is called `audio`, also for readers that take what the runtime's does not: names are of one case. */
const PARAMETER = String.raw`\s*;\s*[^\s;="]+\s*=\s*(?:"[^"\r\n]*"|[^\s;"]*)`
const AUDIO = new RegExp(
  String.raw`^[Cc]ontent-[Dd]isposition:\s*form-data(?:${PARAMETER})*?\s*;\s*[Nn][Aa][Mm][Ee]\*?\s*=\s*"?(?:utf-8'')?audio"?(?:${PARAMETER})*\s*$`,
  'm',
)

export async function examine(input: Buffer): Promise<void> {
  const end = input.indexOf('\n')
  const given = input.toString('latin1', 0, end === -1 ? input.length : end)
  const type = multipartType(given)
  if (type === null) return
  assert.equal(multipartType(type), type, 'the type is written in one way')
  assert.match(type, /^multipart\/form-data; boundary=(?:"[^"\\\x00-\x1f\x7f-\xff]{1,70}"|[0-9A-Za-z'+_\-.]{1,70})$/)
  const boundary = /boundary="?([^"]*)"?$/.exec(type)?.[1] ?? ''
  assert.ok(given.includes(boundary), 'the boundary is the caller’s')

  const body = Buffer.from(input.subarray(end === -1 ? input.length : end + 1))
  const read = await recordingOf(type, [body])
  const pieces = Array.from({ length: Math.ceil(body.length / 7) }, (_none, at) => body.subarray(7 * at, 7 * at + 7))
  assert.deepEqual(valueOf(await recordingOf(type, pieces)), valueOf(read), 'whatever the pieces')
  if (read.outcome === 'refused') return

  const { audio, ...others } = read.value
  assert.deepEqual(Object.keys(others).sort(), ['filename', 'mimeType'])
  for (const value of [audio, ...Object.values(others)]) assert.equal(typeof value, 'string')
  const bytes = Buffer.from(audio as string, 'base64')
  assert.equal(bytes.toString('base64'), audio, 'it is base64')
  // The runtime's reader of forms, which is the gateway's, takes this coding off.
  if (!/content-transfer-encoding/i.test(body.toString('latin1'))) assert.ok(body.includes(bytes), 'it stands in the body')
  assert.notEqual(others['mimeType'], '')
  const parts = partsOf(body, boundary)
  assert.ok(parts.length <= MOST_PARTS, 'few parts')
  const heads = parts.map((part) => part.split('\r\n\r\n')[0] ?? '')
  assert.ok(heads.filter((head) => AUDIO.test(head)).length <= 1, 'one part at most is called audio')
}

/** The parts of a form (RFC 2046 §5.1.1); what comes behind the last delimiter is none. */
function partsOf(body: Buffer, boundary: string): readonly string[] {
  const parts = `\r\n${body.toString('latin1')}`.split(`\r\n--${boundary}`).slice(1)
  const end = parts.findIndex((part) => part.startsWith('--'))
  return end === -1 ? parts : parts.slice(0, end)
}

async function recordingOf(type: string, pieces: readonly Buffer[]): Promise<Recording | Refusal> {
  const budget = makeBudget(4 * MOST)
  const lines = headerLines(['content-type', type, 'transfer-encoding', 'chunked'])
  const message = arrivingMessage(pieces.map((piece) => Buffer.from(piece)))
  const read = await readRecording(
    type,
    { message, lines, caller: 'corp:alice', onWanted: () => {}, timing: { waited: 0 } },
    MOST,
    budget,
  )
  if (read.outcome === 'read') read.budget.give(read.taken)
  assert.ok(budget.take(budget.most), 'its memory is given back')
  return read
}

function valueOf(read: Recording | Refusal) {
  return read.outcome === 'refused' ? read.reason : read.value
}

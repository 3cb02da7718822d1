/** A recording that comes as a form, for an upstream that takes JSON alone: one file `audio`, or it is refused. */
import { test } from 'tap'
import { headerLines } from '../../src/core/wire/headers.ts'
import { readRecording } from '../../src/http/pipeline/audio-recording.ts'
import { makeBudget } from '../../src/http/pipeline/request-body.ts'
import { arrivingMessage } from '../../testing/support/arriving-message.ts'

/** As long as the runtime wants them. */
const BOUNDARY = 'b'.repeat(30)
const TYPE = `multipart/form-data; boundary=${BOUNDARY}`
const END = `--${BOUNDARY}--\r\n`
const FILE = 'Content-Disposition: form-data; name="audio"; filename="a.webm"'
const WEBM = 'Content-Type: audio/webm'

function part(head: string, content: string): string {
  return `--${BOUNDARY}\r\n${head}\r\n\r\n${content}\r\n`
}

/** Reads a form, a few bytes at a time, with a budget of 10,000 bytes. */
async function read(form: string, budget = makeBudget(10_000), most = 10_000) {
  const message = arrivingMessage(form.match(/[^]{1,7}/g)?.map((text) => Buffer.from(text, 'latin1')) ?? [])
  const lines = headerLines(['content-type', TYPE, 'transfer-encoding', 'chunked'])
  return readRecording(TYPE, { message, lines, caller: 'corp:alice', onWanted: () => {}, timing: { waited: 0 } }, most, budget)
}

void test('the file of a form becomes base64, with its type and its name', async (t) => {
  const bytes = Buffer.from(Array.from({ length: 256 }, (_none, byte) => byte)).toString('latin1')
  const audio = Buffer.from(bytes, 'latin1').toString('base64')
  for (const [head, mimeType, filename] of [
    [`${FILE}\r\n${WEBM}`, 'audio/webm', 'a.webm'],
    [`${FILE}\r\nContent-Type: audio/webm;codecs=opus`, 'audio/webm;codecs=opus', 'a.webm'],
    [`${FILE}\r\nContent-Type: application/octet-stream`, 'audio/webm', 'a.webm'],
    [FILE, 'text/plain', 'a.webm'],
    [`Content-Disposition: form-data; name="audio"; filename="../b.wav"\r\nContent-Type: audio/wav`, 'audio/wav', '../b.wav'],
  ] as const) {
    const form = `${part('Content-Disposition: form-data; name="other"', 'x')}${part(head, bytes)}${END}`
    t.match(await read(form), { outcome: 'read', value: { audio, mimeType, filename } }, head)
  }
})

void test('what is not one file called audio is refused, whatever is wrong with it, and its bytes are given back', async (t) => {
  const good = part(`${FILE}\r\n${WEBM}`, 'abc')
  const budget = makeBudget(10_000)
  for (const form of [
    END,
    part('Content-Disposition: form-data; name="audio"', 'no file') + END,
    part('Content-Disposition: form-data; name="Audio"; filename="a"', 'abc') + END,
    part('Content-Disposition: attachment; filename="a"', 'abc') + END,
    `${good}${good}${END}`,
    `${good}${part('Content-Disposition: form-data; name="audio"', 'and a field')}${END}`,
    `${part('Content-Disposition: form-data; name="audio"', 'a field')}${good}${END}`,
    good,
    good.slice(0, -3),
    `--${BOUNDARY}\r\n`,
    `--${BOUNDARY}`,
    'nonsense',
    '--c\r\n\r\n\r\n--c--\r\n',
    `--${BOUNDARY}\r\n${FILE}\r\n`,
    `--${BOUNDARY}\r\n${FILE}`,
    '',
  ]) {
    t.match(await read(form, budget), { outcome: 'refused', reason: 'body-no-recording' }, JSON.stringify(form))
    t.ok(budget.take(10_000), 'all of it is there')
    budget.give(10_000)
  }
})

void test('its bytes are held, and so is what it becomes, until the caller gives them back', async (t) => {
  const form = `${part(`${FILE}\r\n${WEBM}`, 'abc')}${END}`
  const budget = makeBudget(Math.ceil(form.length * 2.5))
  const first = await read(form, budget)
  t.match(await read(form, budget), { reason: 'bodies-budget-exhausted' })
  if (first.outcome === 'read') budget.give(first.taken)
  t.match(await read(form, budget), {
    outcome: 'read',
    bytes: form.length,
    taken: form.length + Math.ceil((form.length * 4) / 3),
  })
})

void test('what it becomes has to find room in the budget, too', async (t) => {
  const form = `${part(`${FILE}\r\n${WEBM}`, 'abc')}${END}`
  const budget = makeBudget(form.length * 2)
  t.match(await read(form, budget), { reason: 'bodies-budget-exhausted' })
  t.ok(budget.take(form.length * 2), 'and all of it is given back')
})

void test('beyond its bound, which base64 makes smaller, it is too large', async (t) => {
  const form = `${part(`${FILE}\r\n${WEBM}`, 'abc')}${END}`
  t.match(await read(form, makeBudget(10_000), Math.ceil((form.length * 4) / 3) - 1), { reason: 'body-too-large' })
  t.match(await read(form, makeBudget(10_000), Math.ceil((form.length * 4) / 3)), { outcome: 'read' })
})

void test('a form may have other parts, and not any number of them', async (t) => {
  const parts = Array.from({ length: 12 }, (_none, at) =>
    part(`Content-Disposition: form-data; name="p${at}"; filename="f"`, 'x'),
  )
  t.match(await read(`${parts.join('')}${part(`${FILE}\r\n${WEBM}`, 'abc')}${END}`), { outcome: 'read' })
  t.match(await read(`${parts.join('').repeat(20)}${part(`${FILE}\r\n${WEBM}`, 'abc')}${END}`, makeBudget(100_000), 100_000), {
    reason: 'body-no-recording',
  })
})

void test('the head of a part is a few lines', async (t) => {
  const head = (length: number): string => `${FILE}\r\nX: ${'x'.repeat(length)}\r\n${WEBM}`
  const budget = (): ReturnType<typeof makeBudget> => makeBudget(1_000_000)
  t.match(await read(`${part(head(1000), 'abc')}${END}`, budget(), 100_000), { outcome: 'read' })
  t.match(await read(`${part(head(9000), 'abc')}${END}`, budget(), 100_000), { reason: 'body-no-recording' })
})

/** Bodies within their bounds, each by itself: what breaks, stops or grows too large holds nothing and leaves nothing open. */
import type { IncomingMessage } from 'node:http'
import { test } from 'tap'
import { headerLines } from '../../src/core/wire/headers.ts'
import { refuse, type Refusal } from '../../src/core/reasons.ts'
import { bodyForm, boundedBody, holdBody, makeBudget, type BodyBudget } from '../../src/http/pipeline/request-body.ts'
import { BodyTooLarge } from '../../src/http/upstream/upstream.ts'
import { writtenMessage } from '../../testing/support/arriving-message.ts'

const CHUNKED = headerLines(['transfer-encoding', 'chunked'])

/** Holds a body of at most 10 bytes. */
const hold = (message: IncomingMessage, budget: BodyBudget, take: (bytes: Buffer) => Refusal | null = () => null) =>
  holdBody({ message, lines: CHUNKED, caller: 'corp:alice', onWanted: () => {}, timing: { waited: 0 } }, 10, budget, take)

void test('a body is held from its first byte, and says what its holder has to give back', async (t) => {
  const { source, message } = writtenMessage()
  const budget = makeBudget(10)
  source.write('12345')
  source.end('67890')
  const held = await hold(message, budget)
  t.match(held, { bytes: 10, taken: 10, budget })
  t.notOk(budget.take(1))
})

void test('whatever ends the reading gives back what came before it', async (t) => {
  const refusal = refuse('body-not-utf8')
  for (const [reason, second, budget, take] of [
    ['body-too-large', '678901', 20, () => null],
    ['bodies-budget-exhausted', '6789', 8, () => null],
    ['body-not-utf8', '6789', 20, (bytes: Buffer) => (bytes.toString() === '6789' ? refusal : null)],
  ] as const) {
    const { source, message } = writtenMessage()
    const left = makeBudget(budget)
    source.write('12345')
    // The second part comes by itself, and the end never.
    setImmediate(() => source.write(second))
    t.match(await hold(message, left, take), { outcome: 'refused', reason })
    t.ok(left.take(budget), reason)
  }
})

void test('what waits to be put together with more may be refused at the end, and is given back', async (t) => {
  const { source, message } = writtenMessage()
  const left = makeBudget(100)
  const held = holdBody(
    { message, lines: CHUNKED, caller: 'corp:alice', onWanted: () => {}, timing: { waited: 0 } },
    100,
    left,
    (bytes) => (bytes.toString() === 'the last' ? refuse('body-not-utf8') : null),
  )
  for (let pieces = 0; pieces < 64; pieces += 1) {
    source.write('x')
    // Each comes by itself.
    await new Promise(setImmediate)
  }
  source.end('the last')
  t.match(await held, { outcome: 'refused', reason: 'body-not-utf8' })
  t.ok(left.take(100))
})

void test('a body that breaks off is refused and gives back what came before it', async (t) => {
  for (const error of [undefined, new Error('reset')]) {
    const { source, message } = writtenMessage()
    const budget = makeBudget(10)
    source.write('12345')
    const held = hold(message, budget, () => {
      setImmediate(() => source.destroy(error))
      return null
    })
    t.match(await held, { outcome: 'refused', reason: 'body-aborted' })
    t.ok(budget.take(10))
  }
})

void test('a body that goes through is bounded to the byte', async (t) => {
  for (const [last, outcome] of [
    ['67890', '1234567890'],
    ['678901', new BodyTooLarge()],
  ] as const) {
    const { source, message } = writtenMessage()
    const bounded = boundedBody(message, 10)
    source.write('12345')
    source.end(last)
    const arrived = bounded.toArray().then((chunks) => Buffer.concat(chunks as Buffer[]).toString())
    if (typeof outcome === 'string') t.equal(await arrived, outcome)
    else await t.rejects(arrived, outcome)
  }
})

void test('a caller who leaves or breaks breaks it off: it has no end that looks proper', async (t) => {
  const reset = new Error('reset')
  for (const [error, expected] of [
    [reset, reset],
    [undefined, new Error('the caller left')],
  ] as const) {
    const { source, message } = writtenMessage()
    const bounded = boundedBody(message, 10)
    source.write('12345')
    setImmediate(() => source.destroy(error))
    await t.rejects(bounded.toArray(), expected)
  }
})

void test('of a body that is wanted no more the rest is read and forgotten', async (t) => {
  const { source, message } = writtenMessage()
  const bounded = boundedBody(message, 1_000_000)
  source.write('12345')
  bounded.destroy()
  await new Promise((resolve) => bounded.once('close', resolve))
  const ended = new Promise((resolve) => message.once('end', resolve))
  source.end('x'.repeat(500_000))
  await ended
  t.ok(message.readableEnded)
})

void test('what the headers say of a body', (t) => {
  for (const [lines, form] of [
    [['content-type', 'application/json'], { form: 'json' }],
    [['content-type', 'application/json', 'content-encoding', ' Identity '], { form: 'json' }],
    [['content-type', 'application/json', 'content-encoding', 'gzip'], { reason: 'content-encoding-unsupported' }],
    [['content-type', 'multipart/form-data; boundary=b'], { form: 'multipart', type: 'multipart/form-data; boundary=b' }],
    [['content-type', 'text/plain'], { reason: 'media-type-unsupported' }],
    [[], { reason: 'media-type-unsupported' }],
  ] as const) {
    t.match(bodyForm(headerLines(['content-length', '1', ...lines])), form)
  }
  for (const [lines, there] of [
    [[], false],
    [['content-length', '0'], false],
    [['content-length', '1'], true],
    [['transfer-encoding', 'chunked'], true],
  ] as const) {
    t.equal(!('form' in bodyForm(headerLines(lines))), there)
  }
  t.end()
})

void test('a body that nobody reads may break all the same: its error ends no process', async (t) => {
  const { source, message } = writtenMessage()
  const bounded = boundedBody(message, 10)
  const closed = new Promise((resolve) => bounded.once('close', resolve))
  source.destroy(new Error('reset'))
  await closed
  t.ok(bounded.destroyed)
})

void test('one caller takes a share of a budget and no more, and gets it back', (t) => {
  const budget = makeBudget(10, 6)
  const [alice, bob] = [budget.of('corp:alice'), budget.of('corp:bob')]
  t.equal(alice.most, 6)
  t.ok(alice.take(4))
  t.notOk(budget.of('corp:alice').take(3), 'by whatever request')
  t.ok(bob.take(6))
  t.notOk(alice.take(1), 'all of it is taken')
  bob.give(6)
  t.ok(alice.take(2))
  alice.give(6)
  t.ok(alice.take(6))
  t.ok(budget.take(4))
  t.end()
})

void test('who has nothing of a budget yet may take more than a share at once, and no more then', (t) => {
  const budget = makeBudget(10, 6)
  const [alice, bob] = [budget.of('corp:alice'), budget.of('corp:bob')]
  t.notOk(alice.take(11), 'but not more than there is')
  t.ok(alice.take(8))
  t.notOk(alice.take(1))
  t.ok(bob.take(2))
  alice.give(8)
  t.ok(alice.take(1))
  t.notOk(alice.take(6), 'whoever has something has the share')
  t.end()
})

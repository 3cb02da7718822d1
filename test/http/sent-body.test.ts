/** The body of a request to the upstream: it goes out whole and in order, and its memory does not wait for a full collection. */
import { createHash, randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import { test, type Test } from 'tap'
import { listen, stop } from '../../examples/http.ts'
import { collect } from '../../src/http/upstream/answer-body.ts'
import { openUpstream } from '../../src/http/upstream/upstream.ts'
import { collectYoung } from '../../testing/support/garbage-collection.ts'

const PIECE = 64 * 1024
/** Of a body that comes with TLS. */
const RECORD = 16 * 1024

/** What the upstream got, as a digest; `failed` where nothing was sent. */
type Send = (
  body: readonly Uint8Array[],
  options?: { readonly mayBegin?: () => boolean; readonly lasting?: boolean },
) => Promise<string>

async function sending(t: Test): Promise<Send> {
  const server = createServer((request, response) => {
    const hash = createHash('sha256')
    request.on('data', (chunk: Buffer) => hash.update(chunk)).on('end', () => response.end(hash.digest('hex')))
  })
  const { origin } = await listen(server, 0, '127.0.0.1')
  const upstream = openUpstream({ url: origin, timeouts: { connect: 1000, headers: 0, body: 0 } })
  t.teardown(async () => {
    await upstream.close()
    await stop(server)
  })
  const { signal } = new AbortController()
  const request = { method: 'POST', target: '/', headers: { 'x-request-id': 'r' }, lasting: true }
  return async (body, options = {}) => {
    const answer = await upstream.send({ ...request, ...options, body }, signal)
    return answer.outcome === 'failed' ? answer.outcome : String(await collect(answer.body, 1000))
  }
}

function digest(pieces: readonly Uint8Array[]): string {
  return createHash('sha256').update(Buffer.concat(pieces)).digest('hex')
}

/** With a buffer of its own, as Node's parser gives large pieces. */
function piece(bytes: number): Uint8Array {
  return new Uint8Array(randomBytes(bytes))
}

void test('pieces of all sizes go out whole and in order, and what is shared with others stays theirs', async (t) => {
  const send = await sending(t)
  const shared = piece(2 * PIECE)
  const memory = new Uint8Array(new SharedArrayBuffer(PIECE))
  const pieces = [piece(1), piece(PIECE), shared.subarray(0, PIECE), piece(100), shared.subarray(PIECE), memory, piece(20_000)]
  const expected = digest(pieces)
  const kept = digest([shared, memory])
  t.equal(await send(pieces), expected)
  t.equal(digest([shared, memory]), kept)
})

void test('a request that may not begin keeps its body, for the next decision', async (t) => {
  const send = await sending(t)
  const pieces = [piece(1), piece(PIECE), piece(PIECE)]
  const expected = digest(pieces)
  t.equal(await send(pieces, { mayBegin: () => false }), 'failed')
  t.equal(await send(pieces), expected)
  // Without its bytes, it would look whole.
  await t.rejects(send(pieces), /sent once/)
  await t.rejects(send(pieces.slice(1, 2), { lasting: false }), /sent once/)
})

function heldBytes(): number {
  collectYoung()
  return process.memoryUsage().arrayBuffers
}

void test('the memory of a body that has waited for long is free without a full collection', async (t) => {
  const send = await sending(t)
  const bodies = Array.from({ length: 16 }, (_, at) => {
    const size = at % 2 === 0 ? PIECE : RECORD
    return Array.from({ length: (8 * PIECE) / size }, () => piece(size))
  })
  const expected = bodies.map(digest)
  const before = heldBytes()
  t.strictSame(await Promise.all(bodies.map((body) => send(body))), expected)
  const freed = (before - heldBytes()) / (8 * PIECE)
  t.ok(freed > 14, `the memory of ${freed} of 16 bodies is free`)
})

/** AG-UI's binary stream: where an event ends, and an end by rule that its own client can read. */
import { test } from 'tap'
import { AG_UI, VERSIONS } from '../../testing/support/agui-versions.ts'
import { binaryRunError, frameBoundary } from '../../src/core/wire/event-streams.ts'

const { eventBytes } = AG_UI['0.0.59']
const STARTED = eventBytes({ type: 'RUN_STARTED', threadId: 't1', runId: 'r1' }, 'binary')
const CONTENT = eventBytes({ type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: 'ü'.repeat(400) }, 'binary')

void test('an end by rule is an event that the real client reads', async (t) => {
  for (const message of [
    'Your access was revoked: sign in again.',
    '',
    'ü',
    'x'.repeat(127),
    'x'.repeat(128),
    'x'.repeat(20_000),
  ]) {
    const written = binaryRunError(message, 'credential-invalid')
    const stream = new Uint8Array([...STARTED, ...CONTENT, ...written])
    for (const version of VERSIONS) {
      t.match(await AG_UI[version].eventsIn(stream, 'binary'), [
        { type: 'RUN_STARTED' },
        { type: 'TEXT_MESSAGE_CONTENT' },
        { type: 'RUN_ERROR', message, code: 'credential-invalid' },
      ])
    }
  }
})

void test('it is what the real encoders write', (t) => {
  const event = { type: 'RUN_ERROR', message: 'no longer', code: 'not-allowed' }
  for (const version of VERSIONS) {
    t.same([...binaryRunError('no longer', 'not-allowed')], [...AG_UI[version].eventBytes(event, 'binary')], version)
  }
  t.end()
})

void test('a stream stands between two events where one has ended, however it is cut into pieces', (t) => {
  const stream = new Uint8Array([...STARTED, ...CONTENT, ...STARTED])
  const ends = new Set([0, STARTED.length, STARTED.length + CONTENT.length, stream.length])
  for (const size of [1, 2, 3, 5, 7, 100, stream.length]) {
    const boundary = frameBoundary()
    t.equal(boundary.between(), true)
    for (let at = 0; at < stream.length; at += size) {
      boundary.see(stream.subarray(at, at + size))
      const seen = Math.min(at + size, stream.length)
      t.equal(boundary.between(), ends.has(seen), `${seen} bytes in pieces of ${size}`)
    }
  }
  t.end()
})

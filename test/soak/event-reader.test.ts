/** What a soak notices in a stream. */
import { test } from 'tap'
import { EventReader, type StreamState } from '../../testing/soak/event-reader.ts'
import { readRunId, writeRunId } from '../../testing/soak/run-id.ts'

const event = (n: number, type = 'TEXT', threadId = 't-1', runId = 'r-1'): string =>
  `data: ${JSON.stringify({ type, threadId, runId, n })}\n\n`
const LAST = event(1, 'RUN_FINISHED')
const REFUSED = 'data: {"type":"RUN_ERROR","message":"","code":"credential-expired"}\n\n'

/** Reads pieces, to the end. */
const read = (...pieces: readonly string[]): StreamState => {
  const reader = new EventReader({ threadId: 't-1', runId: 'r-1' })
  for (const piece of pieces) reader.take(Buffer.from(piece))
  return reader.end()
}

void test('a whole stream has no fault, however it comes', (t) => {
  const fine = { runError: null, foreign: null, fault: null }
  t.same(read(event(0), LAST), fine)
  t.same(read(...Array.from(event(0) + LAST)), fine)
  t.same(read(event(0), ': keep-alive\n\n', LAST), fine, 'comments are nothing')
  t.end()
})

void test('what is missing, doubled or torn is a fault', (t) => {
  t.match(read(event(0)).fault, 'ended after 1 events as if it were whole')
  t.match(read(LAST).fault, 'event 1 came where 0 was due')
  t.match(read(event(0), event(0), LAST).fault, 'event 0 came where 1 was due')
  t.match(read(event(0), LAST, 'data: {').fault, 'ended within an event')
  t.match(read('data: {\n\n').fault, 'no JSON')
  t.match(read('nothing\n\n').fault, 'no event')
  t.end()
})

void test("an event of another thread or run is another's", (t) => {
  t.match(read(event(0, 'TEXT', 't-2'), LAST).foreign, /event of t-2, r-1, where t-1, r-1 was asked for/)
  t.match(read(event(0), event(1, 'RUN_FINISHED', 't-1', 'r-2')).foreign, /event of t-1, r-2/)
  t.end()
})

void test('a stream that the gateway ends says why, and is not short', (t) => {
  t.same(read(event(0), REFUSED), { runError: 'credential-expired', foreign: null, fault: null })
  t.end()
})

void test('a run id says what the answer is to be', (t) => {
  const script = { events: 30, every: 1000, isFilled: true }
  t.same(readRunId(writeRunId(script, 'a1x2')), script)
  t.end()
})

/** A caller who leaves frees everything, wherever the stream is by then and however they leave. */
import { test } from 'tap'
import { dropStreams } from '../../testing/streams/dropping.ts'

const BATCH = 60
const COUNT = 3000

void test('of streams that were dropped nothing is left', async (t) => {
  const seen = await dropStreams(COUNT, BATCH)
  const { first, halfway, last } = seen
  t.equal(seen.arrived, (COUNT * 4) / 5, 'all came to the upstream but those whose request was not whole')
  t.equal(seen.mostOpen, (BATCH * 3) / 5)
  t.equal(seen.openStreams, '0')
  t.equal(seen.upstreamConnections, 0)
  // What libraries keep of the last ones, or for the next, is always the same.
  for (const [kind, count] of Object.entries(last.objects))
    t.ok(count <= first.objects[kind]! + 10, `${kind}: ${first.objects[kind]}, ${count}`)
  for (const [kind, count] of Object.entries(last.resources))
    t.ok(count <= (first.resources[kind] ?? 0) + 2, `${kind}: ${first.resources[kind]}, ${count}`)
  const growth = (last.heap - halfway.heap) / (COUNT / 2)
  t.ok(growth < 1024, `${growth} bytes of heap for each`)
})

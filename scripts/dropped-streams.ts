/** The long run of testing/streams: streams that are opened and dropped by their callers, and what of them is left. */
import { parseArgs } from 'node:util'
import { dropStreams, type Alive } from '../testing/streams/dropping.ts'

const USAGE = `Streams that are opened and dropped by their callers, at every moment and in every way, and what of them is left.

  npm run measure:drops -- [--streams N] [--at-once N]

  --streams  how many in all: four times those at once, or more, and a multiple of twice those (default: 100200)
  --at-once  how many are open at once: a multiple of 15 (default: 300)

Callers, gateway and upstream are in this process: what is counted is that of all three.
Exit code: 0 if nothing is left, 1 if something is, 2 for wrong usage.
`

/** Objects that may be more at the end: of the last look at the figures, and the like. */
const ODD_ONES = 10
/** Bytes of heap for each stream of the second half, where the least that could be kept of one takes more; and for all of them. */
const MOST_GROWTH = 50
const MOST_NOISE = 1024 ** 2

/** How often the progress is told, in batches. */
const TELL_EVERY = 20

function readOptions(): { readonly streams: number; readonly atOnce: number } | null {
  try {
    const { values } = parseArgs({ options: { streams: { type: 'string' }, 'at-once': { type: 'string' } } })
    const [streams, atOnce] = [Number(values.streams ?? 100_200), Number(values['at-once'] ?? 300)]
    return atOnce > 0 && atOnce % 15 === 0 && streams >= 4 * atOnce && streams % (2 * atOnce) === 0 ? { streams, atOnce } : null
  } catch {
    return null
  }
}

const options = readOptions()
if (options === null) {
  process.stderr.write(USAGE)
  process.exit(2)
}
const { streams, atOnce } = options
const seen = await dropStreams(streams, atOnce, (dropped) => {
  if (dropped % (TELL_EVERY * atOnce) === 0) process.stderr.write(`${dropped} of ${streams}\n`)
})
const line = (name: string, of: (alive: Alive) => number | undefined): string =>
  `| ${[name, ...[seen.first, seen.halfway, seen.last].map((alive) => String(of(alive) ?? 0))].join(' | ')} |`
const rows = [
  `| After | ${atOnce} | ${streams / 2} | ${streams} |`,
  '| --- | ---: | ---: | ---: |',
  line('heap, KiB', ({ heap }) => Math.round(heap / 1024)),
  ...Object.keys(seen.last.objects).map((kind) => line(kind, ({ objects }) => objects[kind])),
  ...Object.keys(seen.last.resources).map((kind) => line(`running: ${kind}`, ({ resources }) => resources[kind])),
]
const grown = seen.last.heap - seen.halfway.heap
const growth = grown / (streams / 2)
process.stdout.write(`${rows.join('\n')}

${seen.arrived} of ${streams} reached the upstream, ${seen.mostOpen} were open at once.
Left: ${seen.openStreams ?? '?'} open streams, ${seen.upstreamConnections} connections at the upstream; ${growth.toFixed(1)} bytes of heap for each of the second half.
`)

const isLeft = Object.entries(seen.last.objects).some(([kind, count]) => count > (seen.first.objects[kind] ?? 0) + ODD_ONES)
if (isLeft || grown > MOST_NOISE + (MOST_GROWTH * streams) / 2 || seen.openStreams !== '0' || seen.upstreamConnections > 0)
  process.exitCode = 1

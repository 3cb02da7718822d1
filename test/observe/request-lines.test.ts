/** The line of a request, which is not written by pino: nobody who reads the log may see a difference. */
import { test } from 'tap'
import { pino } from 'pino'
import { makeLog, requestLines, type Logger } from '../../src/observe/log.ts'

/** A log, and its lines without their times. */
function kept(level = 'info', bindings?: Record<string, unknown>): { readonly log: Logger; readonly lines: string[] } {
  const lines: string[] = []
  const log = makeLog(level, { write: (line) => void lines.push(line.replace(/"time":"[^"]+"/, '"time":""')) })
  return { log: bindings === undefined ? log : log.child(bindings), lines }
}

const FIELDS = [
  { requestId: 'a' },
  { requestId: 'a', client: '127.0.0.1', upstream: undefined, status: 200, complete: true, ms: 0 },
  {
    requestId: '"\\\n\u0000\u2028é😀\ud800',
    thread: 'x"y',
    principal: `long ${'ü"'.repeat(40)}`,
    wouldHide: 3,
    reason: undefined,
  },
  { requestId: '', ms: Number.NaN, rule: null },
] as const

void test('a line is what pino writes', (t) => {
  for (const bindings of [undefined, { worker: 1 }, { upstream: 'le"gal', 'a b': [1, { c: true }] }]) {
    const { log, lines } = kept('info', bindings)
    const write = requestLines(log)
    for (const fields of FIELDS) {
      log.info(fields, 'request')
      write(fields)
      const [theirs, ours] = lines.splice(0)
      t.equal(ours, theirs)
    }
  }
  t.end()
})

void test('it has the time of its writing', (t) => {
  const lines: string[] = []
  const before = Date.now()
  requestLines(makeLog('info', { write: (line) => void lines.push(line) }))({ requestId: 'a' })
  const { time } = JSON.parse(lines[0] ?? '') as { readonly time: string }
  t.ok(Date.parse(time) >= before && Date.parse(time) <= Date.now(), time)
  t.equal(new Date(time).toISOString(), time)
  t.end()
})

void test('nothing is written below the level of the log, whenever that changes', (t) => {
  const { log, lines } = kept('warn')
  const write = requestLines(log)
  write({ requestId: 'a' })
  t.same(lines, [])
  log.level = 'info'
  write({ requestId: 'b' })
  t.equal(lines.length, 1)
  t.end()
})

void test('a stream that is chosen by level gets the line, too', (t) => {
  const lines: string[] = []
  const errors: string[] = []
  const log = makeLog(
    'info',
    pino.multistream([
      { level: 'info', stream: { write: (line: string) => void lines.push(line) } },
      { level: 'error', stream: { write: (line: string) => void errors.push(line) } },
    ]),
  )
  log.error('an error before')
  requestLines(log)({ requestId: 'a' })
  t.match(lines[1], /"requestId":"a","msg":"request"\}\n$/)
  t.equal(errors.length, 1, 'and an error before it changes nothing')
  t.end()
})

/** The audit beside the log: by the log's own stream, and counted as lost once nobody reads that. */
import { EventEmitter } from 'node:events'
import { test } from 'tap'
import { openAudit } from '../../src/audit/sinks.ts'
import { makeLog } from '../../src/observe/log.ts'

const LINE = '{"audit":1,"requestId":"r1"}\n'

void test('once nobody reads stdout any more, lines are counted as lost, and it is said', async (t) => {
  const written: string[] = []
  const stream = Object.assign(new EventEmitter(), { write: (line: string) => void written.push(line) })
  const counts = { written: 0, lost: 0 }
  const notes: (string | null)[] = []
  const audit = openAudit(
    { to: 'stdout', file: '' },
    {
      log: makeLog('silent', stream),
      metrics: { auditWritten: (lines) => (counts.written += lines), auditLost: (lines) => (counts.lost += lines) },
      note: (text) => void notes.push(text),
    },
  )
  audit.write(LINE)
  t.strictSame(written, [LINE], 'whatever the level of the log')
  stream.emit('error', Object.assign(new Error('disk'), { code: 'ENOSPC' }))
  audit.write(LINE)
  t.strictSame(counts, { written: 2, lost: 0 }, 'the stream tries that again')
  stream.emit('write', 1)
  t.match(notes, [/ENOSPC/, null])
  stream.emit('error', Object.assign(new Error('gone'), { code: 'EPIPE' }))
  audit.write(LINE)
  stream.emit('write', 1)
  audit.write(LINE)
  t.strictSame(counts, { written: 2, lost: 2 })
  t.match(notes.at(-1), /EPIPE/)
  await audit.stop()
})

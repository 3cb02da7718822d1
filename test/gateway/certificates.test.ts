/** A gateway that runs for months reports a certificate before it expires, once a day. */
import { mock } from 'node:test'
import { test } from 'tap'
import { watchCertificates } from '../../src/gateway/operator-notices.ts'
import { makeLog } from '../../src/observe/log.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

void test('a warning each day from two weeks before the end, and one at the end', (t) => {
  mock.timers.enable({ apis: ['setInterval', 'Date'], now: 1_000_000_000_000 })
  t.teardown(() => mock.timers.reset())
  const lines: Record<string, unknown>[] = []
  const log = makeLog('info', { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) })
  const start = Date.now()
  let certificates = [{ name: 'listen.tls', file: '/tls.crt', from: start - 75 * DAY, until: start + 15 * DAY }]
  const end = watchCertificates(() => certificates, Date.now, log)
  mock.timers.tick(DAY - HOUR)
  t.same(lines, [], 'fifteen days before')
  mock.timers.tick(2 * HOUR)
  t.match(lines, [
    {
      level: 'warn',
      path: 'listen.tls.certificateFile',
      detail: /^\/tls\.crt expires at /,
      msg: 'a certificate has to be renewed',
    },
  ])
  mock.timers.tick(22 * HOUR)
  t.equal(lines.length, 1, 'once a day')
  mock.timers.tick(2 * HOUR)
  t.equal(lines.length, 2)
  mock.timers.tick(13 * DAY)
  t.match(lines.at(-1), { detail: /expired at / })
  certificates = certificates.map((one) => ({ ...one, until: one.until + 90 * DAY }))
  const before = lines.length
  mock.timers.tick(3 * DAY)
  t.equal(lines.length, before, 'renewed')
  end()
  certificates = certificates.map((one) => ({ ...one, until: start }))
  mock.timers.tick(3 * DAY)
  t.equal(lines.length, before, 'stopped')
  t.end()
})

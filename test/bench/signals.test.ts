/** The benchmark of metrics, audit and traces, as a command: what it measures, and that its process really switches. Not how fast anything is. */
import { createServer, type RequestListener } from 'node:http'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'tap'
import { switchedRow } from '../../testing/bench/requests/gateway.ts'
import { BASE } from '../../testing/bench/requests/loads.ts'
import { ALICE, THREAD } from '../../testing/bench/requests/people.ts'
import { makeIssuer } from '../../testing/bench/requests/tokens.ts'
import { medianInterval } from '../../testing/bench/signals/report.ts'
import { SIGNALS, type SignalsResult } from '../../testing/bench/signals/result.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { until } from '../../testing/support/until.ts'
import { bench } from './command.ts'

void test('each load is measured with each of the signals', (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const { status, stdout, stderr } = bench('signals', '--rounds=1', '--seconds=0.5', '--warm-up=0.9', `--out=${folder}`)
  t.equal(status, 0, stderr)
  const { measured, starts } = JSON.parse(readFileSync(join(folder, 'signals.json'), 'utf8')) as SignalsResult
  t.same(
    measured.map(({ load }) => load),
    ['get', 'run'],
  )
  for (const { cpus } of measured) {
    t.equal(cpus.length, starts)
    for (const cpu of cpus) t.ok(SIGNALS.every((signal) => cpu[signal] > 0))
  }
  t.match(stdout, '| metrics, and the audit to a file |')
  t.match(stdout, '| metrics, and traces of 10 % of the requests |')
  t.end()
})

void test('the process records nothing, then metrics, then metrics and the audit, then metrics and traces', async (t) => {
  let exports = 0
  const answer: RequestListener = (request, response) => {
    if (request.url === '/v1/traces') exports += 1
    request.resume().on('end', () => response.setHeader('content-type', 'application/json').end('{"messages":[]}'))
  }
  const upstream = createServer(answer).listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  const { folder, remove } = makeFolder()
  const publicKeyFile = join(folder, 'issuer.pem')
  const token = makeIssuer(publicKeyFile)
  const setting = { folder, publicKeyFile, upstreamPort: (upstream.address() as AddressInfo).port, connections: 1 }
  const served = await switchedRow.start(setting)
  t.teardown(async () => {
    await served.stop()
    upstream.close()
    remove()
  })
  const counted = async (): Promise<number> => {
    const text = await (await fetch(`${served.health}/metrics`)).text()
    return Number(/^threadwarden_decisions_total\{route="threads\/messages",reason="permitted"\} (\d+)/m.exec(text)?.[1] ?? 0)
  }
  const audited = (): number => readFileSync(join(folder, 'audit.jsonl'), 'utf8').length
  const ask = async (): Promise<void> => {
    const answered = await fetch(`http://127.0.0.1:${served.port}${BASE}/threads/${THREAD.threadId}/messages`, {
      headers: { authorization: `Bearer ${token(ALICE)}` },
    })
    t.equal(answered.status, 200)
    await answered.arrayBuffer()
  }
  await ask()
  t.equal(await counted(), 0)
  process.kill(served.pid, 'SIGUSR2')
  await until(async () => {
    await ask()
    return (await counted()) > 0
  })
  t.equal(audited(), 0)
  process.kill(served.pid, 'SIGUSR2')
  await until(async () => {
    await ask()
    return audited() > 0
  })
  t.equal(exports, 0)
  process.kill(served.pid, 'SIGUSR2')
  await until(async () => {
    await ask()
    return exports > 0
  })
})

void test('the interval of a median holds the ranks around it', (t) => {
  const values = Array.from({ length: 100 }, (_, at) => at + 1)
  t.same(medianInterval(values), [41, 60])
  t.same(medianInterval([7]), [7, 7])
  t.end()
})

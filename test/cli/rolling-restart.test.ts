/** A rolling restart under load loses no request: one gateway takes over from another on the same store, as Kubernetes does it. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { runInput } from '../../testing/support/client.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { loadService } from '../../testing/support/service.ts'
import { makeSigner } from '../../testing/support/tokens.ts'
import { events, json, startUpstream } from '../../testing/support/upstream.ts'
import { deferred, until } from '../../testing/support/until.ts'
import { serving } from '../../testing/support/program.ts'

/** Longer than a service takes to hear of an end, here as there. */
const DELAY_S = 10

for (const workers of [1, 2]) {
  void test(`every request of a rolling restart is answered, and a stream that was open comes to its end (workers: ${workers})`, async (t) => {
    const long = deferred()
    const upstream = await startUpstream(async (request, response) => {
      if (request.method !== 'POST') return json({ messages: [] })(request, response)
      if (!String(request.body).includes('"long"'))
        return events({ type: 'RUN_STARTED' }, { type: 'RUN_FINISHED' })(request, response)
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"type":"RUN_STARTED"}\n\n')
      await long.promise
      response.end('data: {"type":"RUN_FINISHED"}\n\n')
    })
    t.teardown(() => upstream.close())
    const { folder, remove } = makeFolder()
    t.teardown(remove)
    const signer = makeSigner()
    t.teardown(() => signer.remove())
    const file = join(folder, 'threadwarden.yaml')
    const configuration = {
      version: 1,
      workers,
      listen: { host: '127.0.0.1', port: 0 },
      health: { host: '127.0.0.1', port: 0 },
      upstream: { url: upstream.url, basePath: '/api/copilotkit' },
      authentication: signer.authentication,
      ownership: { store: 'sqlite:./ownership.db', unknownThread: 'claim' },
      limits: { newThreads: 'off', requests: 'off' },
      shutdown: { delay: `${DELAY_S}s` },
    }
    writeFileSync(file, JSON.stringify(configuration))
    const start = async () => {
      const gateway = await serving(t, file, { environment: { TERMINATION_GRACE_PERIOD_SECONDS: '60' } })
      const [url, health] = [String(gateway.listening['url']), String(gateway.listening['health'])]
      const ready = async (): Promise<boolean> => (await fetch(`${health}/readyz`)).ok
      await until(ready)
      return { ...gateway, url, ready }
    }

    const old = await start()
    const people = Array.from({ length: 8 }, (_, at) => signer.sign(`person-${at}`))
    const service = loadService(t, old.url, people)
    await service.answered(40)
    const open = await fetch(`${old.url}/api/copilotkit/agent/default/run`, {
      method: 'POST',
      headers: { authorization: `Bearer ${people[0]!}`, 'content-type': 'application/json' },
      body: JSON.stringify(runInput('long', 'long')),
    })
    const next = await start()
    service.behind(old.url, next.url)
    await service.answered(40)
    const ended = old.end('SIGTERM')
    await until(async () => !(await old.ready()))
    // Not everybody has heard of it.
    await service.answered(40)
    service.behind(next.url)
    await old.line(({ msg }) => msg === 'draining')
    // One that comes while the port is being closed may be left waiting.
    const refuses = (): Promise<boolean> =>
      fetch(`${old.url}/api/copilotkit/info`, { signal: AbortSignal.timeout(1000) }).then(
        () => false,
        () => true,
      )
    await until(refuses)
    long.resolve()
    t.match(await open.text(), /RUN_STARTED[^]*RUN_FINISHED/)
    t.same(await ended, { code: 0, signal: null })
    await service.answered(40)
    const told = await service.stop()
    t.same(Object.keys(told), ['200'], JSON.stringify(told))
    for (const { lines } of [old, next]) {
      t.ok(lines.filter(({ msg, status }) => msg === 'request' && status === 200).length >= 40)
    }
    await next.end('SIGINT')
  })
}

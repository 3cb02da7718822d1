/** What was replaced is let go of: no configuration holds those before it, however often it changes. */
import { test } from 'tap'
import type { Changes } from '../../testing/support/configuration.ts'
import { collectGarbage } from '../../testing/support/garbage-collection.ts'
import { until } from '../../testing/support/until.ts'
import { startScene, type Scene } from './scene.ts'

/** The configuration in force and its issuer, held by nobody here. */
function current({ gateway }: Scene): readonly WeakRef<object>[] {
  const config = gateway.config()
  const { corp } = config.authentication.issuers
  return [config, ...(corp === undefined ? [] : [corp])].map((one) => new WeakRef(one))
}

const issuer = { issuer: 'corp', audiences: ['chat'], algorithms: ['HS256'], secretFile: 'secret' }

for (const [name, changes] of [
  ['its log level', [{ 'log.level': 'info' }, { 'log.level': 'debug' }]],
  ['an upstream', [{ 'upstream.timeouts.headers': '5s' }, { 'upstream.timeouts.headers': '6s' }]],
  [
    'an issuer',
    [{ 'authentication.issuers.corp': { ...issuer, clockTolerance: '1s' } }, { 'authentication.issuers.corp': issuer }],
  ],
] as const satisfies readonly (readonly [string, readonly [Changes, Changes]])[]) {
  void test(`a configuration that was replaced is let go of, with ${name} changed`, async (t) => {
    const scene = await startScene(t)
    const replaced: (readonly WeakRef<object>[])[] = []
    for (let turn = 0; turn < 6; turn += 1) {
      const headers = { authorization: `Bearer ${scene.token('alice')}`, connection: 'close' }
      await (await fetch(`${scene.base}/info`, { headers })).text()
      replaced.push(current(scene))
      scene.write(changes[turn % 2] ?? {})
      t.match(await scene.gateway.reload('test'), { outcome: 'reloaded' })
    }
    // The first one's connections, keys and counters may go on serving; what lies between goes.
    await until(() => {
      collectGarbage()
      return replaced.slice(1).every((all) => all.every((one) => one.deref() === undefined))
    })
    t.equal(replaced.length, 6)
  })
}

/** Where the doctor looks for a gateway. */
import { test } from 'tap'
import { mountsOf } from '../../src/config/mounts.ts'
import { healthOrigin, publicBase } from '../../src/tools/doctor/requests.ts'
import { accepted, type Changes } from '../../testing/support/configuration.ts'

const NOTHING = { timeout: 1000, token: null, url: null, run: null, quiet: 0 }

for (const [title, changes, base, health] of [
  ['by default', {}, 'http://127.0.0.1:8080/api/copilotkit', 'http://127.0.0.1:8081'],
  [
    'on every address, of IPv6 too',
    { 'listen.host': '::', 'health.host': '::' },
    'http://[::1]:8080/api/copilotkit',
    'http://[::1]:8081',
  ],
  [
    'on a name and an address',
    { 'listen.host': 'localhost', 'health.host': '10.0.0.7' },
    'http://localhost:8080/api/copilotkit',
    'http://10.0.0.7:8081',
  ],
  ['by the path that callers use', { 'upstream.publicPath': '/chat' }, 'http://127.0.0.1:8080/chat', 'http://127.0.0.1:8081'],
  ['without a path', { 'upstream.basePath': '/' }, 'http://127.0.0.1:8080', 'http://127.0.0.1:8081'],
  ['on a port that nobody knows', { 'listen.port': 0, 'health.port': 0 }, null, null],
] as const satisfies readonly (readonly [string, Changes, string | null, string | null])[]) {
  void test(`a gateway that listens ${title}`, (t) => {
    const { config } = accepted(changes)
    t.equal(publicBase({ config, mount: mountsOf(config)[0], wishes: NOTHING }), base)
    t.equal(healthOrigin(config), health)
    t.end()
  })
}

void test('what --url says comes first', (t) => {
  const url = 'https://chat.example.com/api/copilotkit'
  const { config } = accepted({})
  t.equal(publicBase({ config, mount: mountsOf(config)[0], wishes: { ...NOTHING, url } }), url)
  t.end()
})

/** A key that nobody knows is a setting that an operator believes in and that has no effect: always a fault. */
import { test } from 'tap'
import { faultsIn } from '../../testing/support/configuration.ts'

const MISTYPED = [
  ['polcy', 'policy'],
  ['listen.prot', 'port'],
  ['listen.trustedProxys', 'trustedProxies'],
  ['upstream.basepath', 'basePath'],
  ['upstream.timeouts.conect', 'connect'],
  ['cors.origin', 'origins'],
  ['authentication.issuer', 'issuers'],
  ['authentication.issuers.corp.audience', 'audiences'],
  ['authentication.issuers.corp.claims.roles', 'role'],
  ['ownership.unknownThreads', 'unknownThread'],
  ['streams.keepalive', 'keepAlive'],
  ['limits.runbody', 'runBody'],
  ['log.levle', 'level'],
] as const

for (const [path, meant] of MISTYPED) {
  void test(`${path} is refused, and ${meant} suggested`, (t) => {
    t.match(faultsIn({ [path]: '1' }), [{ path, message: 'is not a known key', hint: `did you mean "${meant}"?` }])
    t.end()
  })
}

void test('where nothing is near, the known keys are listed', (t) => {
  t.match(faultsIn({ 'cors.whatever': 1 }), [{ path: 'cors.whatever', hint: 'known here: origins, credentials' }])
  t.match(faultsIn({ 'log.lxl': 1 }), [{ path: 'log.lxl', hint: 'known here: level' }], 'of a short word not much may differ')
  t.match(faultsIn({ 'log.levxx': 1 }), [{ path: 'log.levxx', hint: 'did you mean "level"?' }])
  t.end()
})

void test('keys of the prototype are no keys', (t) => {
  for (const key of ['__proto__', 'constructor', 'toString']) {
    const text = `{"version":1,"${key}":{"a":1},"upstream":{"url":"http://a","basePath":"/"},"authentication":{"mode":"off"},"ownership":{"unknownThread":"claim"}}`
    t.match(faultsIn(text), [{ path: key, message: 'is not a known key' }])
  }
  t.end()
})

void test('keys that only later work brings are unknown too', (t) => {
  const later = ['identityHeaders', 'assertion', 'tracing']
  const faults = faultsIn(Object.fromEntries(later.map((key) => [key, {}])))
  t.same(faults.map((fault) => fault.path).sort(), later.sort())
  t.end()
})

for (const [key, line] of [
  ['maxSize', 'size 100M'],
  ['keep', 'rotate 10'],
] as const) {
  void test(`audit.${key}, which was removed, is refused with what to write in its place`, (t) => {
    const [fault, ...others] = faultsIn({ 'audit.to': 'file', [`audit.${key}`]: '64KiB' })
    t.match(fault, { path: `audit.${key}`, message: /was removed/, hint: /audit\.md#rotate-the-file/ })
    t.ok(fault?.hint?.includes(`${line} …`) && fault.hint.includes('postrotate kill -HUP'))
    t.same(others, [])
    t.match(faultsIn({ 'audit.xyz': 1 }), [{ hint: 'known here: to, file' }], 'and is not offered')
    t.end()
  })
}

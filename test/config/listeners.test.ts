/** The listeners: ports that exist, and proxies that are trusted by network, never everybody. */
import { test } from 'tap'
import { accepted, faultsIn } from './configuration.ts'

void test('port 0 and the last port are ports', (t) => {
  t.equal(accepted({ 'listen.port': 0 }).config.listen.port, 0)
  t.equal(accepted({ 'health.port': 65_535 }).config.health.port, 65_535)
  t.equal(accepted({ 'listen.port': '8088' }).config.listen.port, 8088, 'also as the text that ${env:PORT} gives')
  t.end()
})

for (const port of [-1, 65_536, 80.5, '80a', '', '65536', null, true]) {
  void test(`${JSON.stringify(port)} is no port`, (t) => {
    const fault = { path: 'listen.port', message: 'is not a port number', hint: '0 to 65535' }
    t.match(faultsIn({ 'listen.port': port }), [fault])
    t.end()
  })
}

void test('proxies are trusted by their network', (t) => {
  const trustedProxies = ['10.0.0.0/8', '192.168.1.7/32', 'fd00::/8', '::1/128']
  t.same(accepted({ 'listen.trustedProxies': trustedProxies }).config.listen.trustedProxies, trustedProxies)
  t.end()
})

for (const everybody of ['0.0.0.0/0', '::/0', '10.0.0.0/0', 'fd00::/0']) {
  void test(`trusting ${everybody} is trusting everybody: refused`, (t) => {
    const faults = faultsIn({ 'listen.trustedProxies': ['10.0.0.0/8', everybody] })
    t.match(faults, [{ path: 'listen.trustedProxies', message: 'would trust everybody', hint: 'name the proxy networks' }])
    t.end()
  })
}

for (const none of ['10.0.0.1', 'loopback', '*', '10.0.0.0/33', 'true', '', '10.0.0.0/-1']) {
  void test(`"${none}" is no network`, (t) => {
    const fault = { path: 'listen.trustedProxies.0', message: 'is not a CIDR', hint: 'write 10.0.0.0/8' }
    t.match(faultsIn({ 'listen.trustedProxies': [none] }), [fault])
    t.end()
  })
}

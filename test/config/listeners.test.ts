/** The listeners: ports that exist, and proxies that are trusted by network, never everybody. */
import { test } from 'tap'
import { connectionsOfWorker, mostConnections } from '../../src/config/connections.ts'
import { needsRestart } from '../../src/snapshot/reload.ts'
import { accepted, faultsIn } from '../../testing/support/configuration.ts'

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
    t.match(faults, [
      { path: 'listen.trustedProxies', message: 'would trust every address', hint: 'name the networks of the proxies' },
    ])
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

void test('each listener has a port of its own, where they share an address', (t) => {
  const admin = { host: '127.0.0.1', port: 8080, credential: 'c'.repeat(32) }
  const fault = { message: 'is that of listen, too', hint: 'each listener has a port of its own' }
  t.match(faultsIn({ health: { host: '0.0.0.0', port: 8080 } }), [{ path: 'health.port', ...fault }])
  t.match(faultsIn({ admin }), [{ path: 'admin.port', ...fault }], 'listen is on all addresses by default')
  const apart = { 'listen.host': '10.0.0.1', admin }
  t.equal(accepted(apart).config.admin?.port, 8080, 'two addresses may have one port')
  t.equal(faultsIn({ ...apart, 'listen.host': '127.0.0.1' }).length, 1)
  t.equal(faultsIn({ ...apart, 'listen.host': '::' }).length, 1)
  t.equal(accepted({ 'listen.port': 0, 'health.port': 0 }).config.health.port, 0, 'port 0 is another one each time')
  t.end()
})

void test('the limit of connections: for a small container by default, and divided among workers', (t) => {
  const tls = { certificateFile: '/tls.crt', keyFile: '/tls.key' }
  const of = (changes: Readonly<Record<string, unknown>>) => accepted(changes).config.listen
  t.equal(mostConnections(of({})), 8192)
  t.equal(mostConnections({ ...of({}), tls: { ...tls, minVersion: 'TLSv1.2' } }), 3072)
  const chosen = of({ 'listen.connections': 1000 })
  t.equal(mostConnections({ ...chosen, tls: { ...tls, minVersion: 'TLSv1.2' } }), 1000)
  t.equal(connectionsOfWorker(chosen, 3), 334)
  t.ok(needsRestart(accepted({}).config, accepted({ 'listen.connections': 1000 }).config).includes('listen.connections'))
  t.match(faultsIn({ 'listen.connections': 15 }), [{ path: 'listen.connections', message: 'is too few', hint: 'at least 16' }])
  t.match(faultsIn({ 'listen.connections': 'off' }), [{ path: 'listen.connections', message: 'is not a number of connections' }])
  t.end()
})

void test('a socket of systemd takes the place of host and port, in a gateway of one process', (t) => {
  const { config } = accepted({ 'listen.fd': 3, 'health.port': 8080 })
  t.equal(config.listen.fd, 3, 'and the default port of listen is not taken')
  t.ok(needsRestart(accepted({}).config, config).includes('listen.fd'))
  t.match(faultsIn({ 'listen.fd': 2 }), [{ path: 'listen.fd', message: 'is not a socket of systemd', hint: '3 is the first' }])
  t.match(faultsIn({ 'listen.fd': '3' }), [{ path: 'listen.fd', message: 'is not a file descriptor' }])
  for (const workers of [2, 'auto']) {
    t.match(faultsIn({ 'listen.fd': 3, workers }), [{ path: 'listen.fd', message: 'cannot go with several workers' }])
  }
  t.end()
})

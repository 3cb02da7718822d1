/** The TLS keys of a configuration: what is refused, what only warns, and what an operator is told to do. */
import { chmodSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { prepare } from '../../src/snapshot/load.ts'
import type { Changes } from '../../testing/support/configuration.ts'
import { encrypted, inDays, makeAuthority } from '../../testing/support/issuing.ts'
import { configFile } from '../../testing/support/program.ts'

const AUTHORITY = makeAuthority()
const PAIR = AUTHORITY.issue()
const FILES = { certificateFile: 'tls.crt', keyFile: 'tls.key' }
const HTTPS = { 'upstream.url': 'https://127.0.0.1:4000' }

function prepared(t: Test, changes: Changes, files: Readonly<Record<string, string>> = {}) {
  const { file, folder } = configFile(t, changes)
  const all = { 'tls.crt': PAIR.cert, 'tls.key': PAIR.key, 'ca.crt': AUTHORITY.cert, ...files }
  for (const [name, text] of Object.entries(all)) writeFileSync(join(folder, name), text)
  return { folder, read: () => prepare(file, process.env) }
}

function faultsOf(t: Test, changes: Changes, files: Readonly<Record<string, string>> = {}): readonly string[] {
  const outcome = prepared(t, changes, files).read()
  return outcome.ok ? [] : outcome.faults.map(({ path, message, hint }) => `${path}: ${message} (${hint})`)
}

void test('complete settings are accepted, with paths that start at the folder of the file', (t) => {
  const tls = { ...FILES, minVersion: 'TLSv1.3', clientCertificates: { ca: 'ca.crt' } }
  const upstream = { ca: 'ca.crt', ...FILES, serverName: 'runtime.internal' }
  const { folder, read } = prepared(t, { ...HTTPS, 'listen.tls': tls, 'upstream.tls': upstream })
  const outcome = read()
  t.match(outcome, { ok: true, value: { warnings: [] } })
  const at = (name: string): string => join(folder, name)
  const pair = { certificateFile: at('tls.crt'), keyFile: at('tls.key') }
  t.match(outcome, {
    value: {
      config: {
        listen: { tls: { ...pair, minVersion: 'TLSv1.3', clientCertificates: { ca: at('ca.crt') } } },
        upstream: { tls: { ...pair, ca: at('ca.crt'), minVersion: 'TLSv1.2', serverName: 'runtime.internal' } },
      },
      certificates: [{ name: 'listen.tls' }, { name: 'upstream.tls' }],
    },
  })
  t.end()
})

// oxfmt-ignore
const WRONG: readonly (readonly [what: string, changes: Changes, says: RegExp])[] = [
  ['a listener without a key', { 'listen.tls': { certificateFile: 'tls.crt' } }, /^listen\.tls\.keyFile: is required/],
  ['an old version', { 'listen.tls': { ...FILES, minVersion: 'TLSv1.1' } }, /^listen\.tls\.minVersion: .*TLSv1\.2/],
  ['client certificates of no CA', { 'listen.tls': { ...FILES, clientCertificates: {} } }, /^listen\.tls\.clientCertificates\.ca: is required/],
  ['a certificate alone', { ...HTTPS, 'upstream.tls': { certificateFile: 'tls.crt' } }, /^upstream\.tls\.keyFile: is required with certificateFile/],
  ['a key alone', { ...HTTPS, 'upstream.tls': { keyFile: 'tls.key' } }, /^upstream\.tls\.certificateFile: is required with keyFile/],
  ['two CAs', { ...HTTPS, 'upstream.ca': 'ca.crt', 'upstream.tls': { ca: 'ca.crt' } }, /^upstream\.ca: is also in tls\.ca \(keep one/],
  ['two CAs of an agent', { 'agents.research': { url: 'https://127.0.0.1:5000', ca: 'ca.crt', tls: { ca: 'ca.crt' } } }, /^agents\.research\.ca: is also in tls\.ca/],
  ['two CAs of another upstream', { 'upstreams.other': { url: 'https://127.0.0.1:5000', basePath: '/x', ca: 'ca.crt', tls: { ca: 'ca.crt' } } }, /^upstreams\.other\.ca: is also/],
  ['an address for a name', { ...HTTPS, 'upstream.tls': { serverName: '10.0.0.1' } }, /^upstream\.tls\.serverName: is an address/],
  ['no host name', { ...HTTPS, 'upstream.tls': { serverName: 'https://a' } }, /^upstream\.tls\.serverName: is not a host name/],
]

for (const [what, changes, says] of WRONG) {
  void test(`${what} is an error`, (t) => {
    t.match(faultsOf(t, changes), [says])
    t.end()
  })
}

void test('files that cannot be used are errors, each with what to do', (t) => {
  const changes = { ...HTTPS, 'listen.tls': { ...FILES, clientCertificates: { ca: 'ca.crt' } }, 'upstream.tls': { ca: 'ca.crt' } }
  // oxfmt-ignore
  const cases: readonly (readonly [files: Readonly<Record<string, string>>, says: readonly RegExp[]])[] = [
    [{ 'tls.key': AUTHORITY.issue().key }, [/^listen\.tls\.keyFile: .*tls\.key is not the key of the certificate in .*tls\.crt \(write the two files/]],
    [{ 'tls.key': encrypted(PAIR.key) }, [/^listen\.tls\.keyFile: .*is encrypted \(.*openssl pkey/]],
    [{ 'tls.key': 'nothing' }, [/^listen\.tls\.keyFile: .*holds no private key/]],
    [{ 'tls.crt': PAIR.key, 'tls.key': '' }, [/^listen\.tls\.certificateFile: .*holds no certificate/, /^listen\.tls\.keyFile: /]],
    [{ 'ca.crt': 'nothing' }, [/^listen\.tls\.clientCertificates\.ca: .*holds no certificate/, /^upstream\.tls\.ca: .*holds no certificate/]],
  ]
  for (const [files, says] of cases) {
    const faults = faultsOf(t, changes, files)
    t.equal(faults.length, says.length, faults.join('\n'))
    for (const [at, one] of says.entries()) t.match(faults[at], one)
    t.notMatch(faults.join(''), PAIR.key.split('\n')[1], 'no part of a key')
  }
  const { folder, read } = prepared(t, changes)
  rmSync(join(folder, 'tls.key'))
  t.match(read(), {
    ok: false,
    faults: [{ path: 'listen.tls.keyFile', message: /tls\.key does not exist/, hint: 'check the path' }],
  })
  t.end()
})

void test('a key that this user may not read', { skip: process.getuid?.() === 0 }, (t) => {
  const { folder, read } = prepared(t, { 'listen.tls': FILES })
  chmodSync(join(folder, 'tls.key'), 0)
  t.match(read(), { ok: false, faults: [{ path: 'listen.tls.keyFile', message: /permission denied/ }] })
  t.end()
})

void test('the time of a certificate is a warning: an error would stop every other change as well', (t) => {
  const warnings = (from: Date, until: Date): unknown => {
    const { cert, key } = AUTHORITY.issue({ from, until })
    const outcome = prepared(
      t,
      { ...HTTPS, 'listen.tls': FILES, 'upstream.tls': FILES },
      { 'tls.crt': cert, 'tls.key': key },
    ).read()
    return outcome.ok ? outcome.value.warnings : outcome.faults
  }
  for (const [from, until, says] of [
    [-90, -1, /expired at /],
    [-80, 10, /expires at /],
    [1, 90, /is not valid before /],
  ] as const) {
    const each = { message: says, hint: /replace both files/ }
    t.match(warnings(inDays(from), inDays(until)), [
      { path: 'listen.tls.certificateFile', ...each },
      { path: 'upstream.tls.certificateFile', ...each },
    ])
  }
  t.same(warnings(inDays(-10), inDays(80)), [])
  t.end()
})

void test('TLS of an upstream without https has no effect, which is a warning', (t) => {
  const outcome = prepared(t, { 'upstream.url': 'http://127.0.0.1:4000', 'upstream.tls': FILES }).read()
  t.match(outcome, { ok: true, value: { warnings: [{ path: 'upstream.tls', message: 'has no effect with an http:// URL' }] } })
  t.end()
})

/** By what a caller is counted: users by their id, all others by their network, and never one for the other. */
import { test } from 'tap'
import { ANONYMOUS, EVERYBODY } from '../../src/core/decide/principal.ts'
import { callerKey } from '../../src/http/pipeline/authentication.ts'
import { user } from '../../testing/support/callers.ts'

const keyOf = (address: string): string => callerKey(ANONYMOUS, address)

void test('a user is counted by id, from wherever they come', (t) => {
  for (const address of ['192.0.2.1', '2001:db8::1', '']) t.equal(callerKey(user('alice'), address), 'corp:alice')
  t.not(callerKey(user('alice'), '192.0.2.1'), callerKey(user('alice', { issuer: 'partner' }), '192.0.2.1'))
  t.end()
})

void test('who is not signed in is counted by address, in both modes', (t) => {
  t.equal(keyOf('192.0.2.1'), '@192.0.2.1')
  t.equal(callerKey(EVERYBODY, '192.0.2.1'), '@192.0.2.1')
  t.not(keyOf('192.0.2.1'), keyOf('192.0.2.2'))
  t.end()
})

void test('an IPv4 address is one caller, however it is written', (t) => {
  for (const address of ['::ffff:192.0.2.1', '::FFFF:192.0.2.1', '192.0.2.1:49152', '[::ffff:192.0.2.1]:49152']) {
    t.equal(keyOf(address), '@192.0.2.1', address)
  }
  t.end()
})

// oxfmt-ignore
const NETWORK = [
  '2001:db8:0:7::', '2001:db8:0:7::1', '2001:db8:0:7:ffff:ffff:ffff:ffff', '2001:0DB8:0000:0007:0000:0000:0000:0001', '2001:db8::7:0:0:0:1',
  '2001:db8:0:7:1:2:3:4', '2001:db8:0:7::192.0.2.1', '2001:db8:0:7::1%eth0', '[2001:db8:0:7::1]', '[2001:db8:0:7::1]:443',
]

void test('the first 64 bits of IPv6 are one caller, in every spelling', (t) => {
  for (const address of NETWORK) t.equal(keyOf(address), '@2001:db8:0:7::/64', address)
  for (const [address, key] of [
    ['2001:db8:0:8::1', '@2001:db8:0:8::/64'],
    ['2001:db8::', '@2001:db8:0:0::/64'],
    ['2001:db8::1', '@2001:db8:0:0::/64'],
    ['::1', '@0:0:0:0::/64'],
    ['::', '@0:0:0:0::/64'],
    ['fe80::1%eth0', '@fe80:0:0:0::/64'],
    ['1:2:3:4:5:6:7::', '@1:2:3:4::/64'],
    ['::2:3:4:5:6:7:8', '@0:2:3:4::/64'],
    ['1::5:6:7:8', '@1:0:0:0::/64'],
  ] as const) {
    t.equal(keyOf(address), key, address)
  }
  t.end()
})

void test('no address is taken for a user, whatever either of them is called', (t) => {
  const addresses = ['192.0.2.1', '2001:db8::1', '::', '']
  for (const issuer of ['corp', '0', '2001', 'a-b']) {
    for (const subject of ['db8:0:0::/64', '@192.0.2.1', '192.0.2.1', '0:0:0::/64', 'alice']) {
      const key = callerKey(user(subject, { issuer }), '192.0.2.1')
      t.equal(key, `${issuer}:${subject}`)
      for (const address of addresses) t.not(keyOf(address), key)
    }
  }
  t.end()
})

/** Which hosts are on this machine, and what keys may be fetched from. */
import { test } from 'tap'
import { isFetchable, isLoopbackHost } from '../../src/core/wire/addresses.ts'

void test('a loopback host is localhost, any address of 127.0.0.0/8 or ::1, and nothing that looks like one', (t) => {
  for (const host of ['localhost', '127.0.0.1', '127.0.0.53', '127.10.200.254', '[::1]']) t.ok(isLoopbackHost(host), host)
  // oxfmt-ignore
  const elsewhere = [
    '', 'localhost.example', 'notlocalhost', 'my.localhost', '127.0.0.1.example', 'x127.0.0.1', '127.example', '127.a.b.c', '127.0.0',
    '127...', '128.0.0.1', '10.0.0.1', '0.0.0.0', '[::]', '[::1].example', 'x[::1]', '[::ffff:7f00:1]', '[::2]',
  ]
  for (const host of elsewhere) t.notOk(isLoopbackHost(host), host)
  t.end()
})

void test('keys are fetched over https, and over http from this machine only', (t) => {
  for (const url of [
    'https://keys.example/jwks',
    'https://10.0.0.1/',
    'http://localhost:4000/jwks',
    'http://127.1/',
    'http://[::1]/',
  ])
    t.ok(isFetchable(url), url)
  // oxfmt-ignore
  const refused = [
    '', 'keys.example', '/jwks', 'http://keys.example/', 'http://10.0.0.1/', 'http://localhost@keys.example/', 'http://localhost.example/',
    'ftp://localhost/', 'ws://localhost/', 'file:///etc/passwd', 'data:application/json,{}', 'https://',
  ]
  for (const url of refused) t.notOk(isFetchable(url), url)
  t.end()
})

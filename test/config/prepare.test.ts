/** What `serve` and `validate` both hold before a start: configuration, policy and key files, and every fault of all of them. */
import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import type { Fault } from '../../src/document/fault.ts'
import { prepare } from '../../src/snapshot/load.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { configuration, type Changes } from '../../testing/support/configuration.ts'

const pem = (pair: { publicKey: { export(options: object): unknown } }) =>
  String(pair.publicKey.export({ type: 'spki', format: 'pem' }))
const RSA = generateKeyPairSync('rsa', { modulusLength: 2048 })
const FILES: Readonly<Record<string, string>> = {
  'rsa.pem': pem(RSA),
  'weak.pem': pem(generateKeyPairSync('rsa', { modulusLength: 1024 })),
  'ec.pem': pem(generateKeyPairSync('ec', { namedCurve: 'P-256' })),
  'private.pem': String(RSA.privateKey.export({ type: 'pkcs8', format: 'pem' })),
  'two.pem': pem(RSA).repeat(2),
  'garbage.pem': '-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n',
  'short.txt': `${'x'.repeat(31)}\n`,
  'long.txt': `${'x'.repeat(32)}\n`,
}

function faults(changes: Changes): readonly Fault[] {
  const { folder, remove } = makeFolder()
  try {
    const file = join(folder, 'threadwarden.yaml')
    writeFileSync(file, JSON.stringify(configuration(changes)))
    for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, name), text)
    const prepared = prepare(file, {})
    return prepared.ok ? [] : prepared.faults
  } finally {
    remove()
  }
}

const issuer = (key: string, file: Record<string, string>, algorithms: string[]) => ({
  [`authentication.issuers.${key}`]: { issuer: `https://${key}.example`, audiences: ['chat'], algorithms, ...file },
})

for (const [name, file, algorithms, message] of [
  ['a key that is not there', { publicKeyFile: 'nope.pem' }, ['RS256'], /nope\.pem does not exist/],
  ['a private key', { publicKeyFile: 'private.pem' }, ['RS256'], /holds a private key: give the gateway the public one only/],
  ['two keys', { publicKeyFile: 'two.pem' }, ['RS256'], /must hold exactly one PEM block/],
  ['no key', { publicKeyFile: 'long.txt' }, ['RS256'], /must hold exactly one PEM block/],
  ['garbage', { publicKeyFile: 'garbage.pem' }, ['RS256'], /holds no public key in PEM form/],
  ['a key of the wrong type', { publicKeyFile: 'ec.pem' }, ['ES256', 'RS256'], /holds a key that cannot serve RS256/],
  ['a key of the wrong curve', { publicKeyFile: 'ec.pem' }, ['ES384'], /cannot serve ES384/],
  ['a weak key', { publicKeyFile: 'weak.pem' }, ['RS256'], /cannot serve RS256/],
  ['a secret that is not there', { secretFile: 'nope.txt' }, ['HS256'], /nope\.txt does not exist/],
  ['a secret that is shorter than its hash', { secretFile: 'short.txt' }, ['HS256'], /holds 31 bytes: HS256 needs 32/],
  ['a secret that is too short for one of its hashes', { secretFile: 'long.txt' }, ['HS256', 'HS512'], /HS512 needs 64/],
] as const) {
  void test(`${name} is a fault at its place`, (t) => {
    const path = `authentication.issuers.corp.${Object.keys(file)[0]}`
    t.match(faults(issuer('corp', file, [...algorithms])), [{ path, message }])
    t.end()
  })
}

void test('keys that fit are no fault', (t) => {
  t.same(faults(issuer('corp', { publicKeyFile: 'rsa.pem' }, ['RS256', 'PS512'])), [])
  t.same(faults(issuer('corp', { publicKeyFile: 'ec.pem' }, ['ES256'])), [])
  t.same(faults(issuer('corp', { secretFile: 'long.txt' }, ['HS256'])), [])
  t.end()
})

for (const key of ['policy', 'shadowPolicy']) {
  void test(`a ${key} that cannot be read is a fault of the line that names it`, (t) => {
    const [fault, ...others] = faults({ [key]: './nope.yaml' })
    t.match(fault, { file: /threadwarden\.yaml$/, line: 1, path: key, message: /nope\.yaml does not exist$/ })
    t.same(others, [])
    t.end()
  })
}

void test('a CA that cannot be read is a fault', (t) => {
  t.match(faults({ 'upstream.ca': 'nope.pem' }), [{ path: 'upstream.ca', message: /nope\.pem does not exist/ }])
  const store = { 'ownership.store': 'postgres://a@db.example/d', 'ownership.postgres.ca': 'nope.pem' }
  t.match(faults(store), [{ path: 'ownership.postgres.ca', message: /nope\.pem does not exist/ }])
  t.end()
})

void test('faults of the key files and of the policy are reported together', (t) => {
  const found = faults({
    'upstream.ca': 'nope.pem',
    policy: 'nope.yaml',
    ...issuer('corp', { publicKeyFile: 'nope.pem' }, ['RS256']),
  })
  t.same(
    found.map(({ file, path }) => `${file.replace(/^.*\//, '')} ${path}`),
    ['threadwarden.yaml policy', 'threadwarden.yaml authentication.issuers.corp.publicKeyFile', 'threadwarden.yaml upstream.ca'],
  )
  t.end()
})

void test('faults of the configuration and of the policy are reported together', (t) => {
  const paths = faults({ 'log.level': 'loud', policy: 'nope.yaml' }).map(
    ({ file, path }) => `${file.replace(/^.*\//, '')} ${path}`,
  )
  t.same(paths, ['threadwarden.yaml log.level', 'threadwarden.yaml policy'])
  t.end()
})

void test('the key files of two issuers are reported together', (t) => {
  const found = faults({
    ...issuer('corp', { publicKeyFile: 'nope.pem' }, ['RS256']),
    ...issuer('other', { secretFile: 'short.txt' }, ['HS256']),
  })
  const paths = found.map(({ path }) => path).filter((path) => path.startsWith('authentication'))
  t.same(paths, ['authentication.issuers.corp.publicKeyFile', 'authentication.issuers.other.secretFile'])
  t.end()
})

void test('with two issuers the shipped policy asks which one its operators are of', (t) => {
  const found = faults(issuer('other', { publicKeyFile: 'rsa.pem' }, ['RS256']))
  t.match(found, [
    { path: 'operators.0', message: 'does not name its issuer', hint: 'add issuer: corp or other' },
    { path: 'operators.1' },
  ])
  t.end()
})

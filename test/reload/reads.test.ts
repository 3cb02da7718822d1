/** A reload reads each file once, and parses the configuration once: what was checked is what is activated. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'tap'
import { prepare } from '../../src/snapshot/load.ts'
import { AUTHORITY } from '../../testing/support/certificates.ts'
import { countReads } from '../../testing/support/counted-reads.ts'
import { PAIRS, pemOf } from '../../testing/support/signing.ts'
import { CHAT, startScene } from './scene.ts'

const FILES: Readonly<Record<string, string>> = {
  'shadow.yaml': CHAT,
  token: 'the secret of the upstream',
  credential: 'c'.repeat(32),
  'issuer.pem': pemOf(PAIRS.rsa.publicKey),
  'bearer-token': 'a token that the issuer wants',
  'signing.pem': String(PAIRS.p256.privateKey.export({ type: 'pkcs8', format: 'pem' })),
  'former.pem': pemOf(PAIRS.p256.publicKey),
  'upstream-ca.pem': AUTHORITY,
  'issuer-ca.pem': AUTHORITY,
}

const ISSUER = { audiences: ['chat'], algorithms: ['RS256'], bearerTokenFile: 'bearer-token' }
const CHANGES = {
  shadowPolicy: './shadow.yaml',
  'upstream.headers': { 'x-token': '${file:token}', 'x-again': '${file:./token}' },
  'upstream.ca': 'upstream-ca.pem',
  admin: { port: 0, credentialFile: 'credential' },
  'authentication.issuers.partner': { issuer: 'https://a.example', ...ISSUER, publicKeyFile: 'issuer.pem', ca: 'issuer-ca.pem' },
  'authentication.issuers.other': { issuer: 'https://b.example', ...ISSUER, publicKeyFile: 'issuer.pem', ca: 'issuer-ca.pem' },
  'identity.assertion': { issuer: 'https://chat.example', audience: 'agents', keyFiles: ['signing.pem', 'former.pem'] },
}

void test('one attempt reads each file once and parses the configuration once, also for its activation', async (t) => {
  const { folder, write, gateway } = await startScene(t)
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, name), text)
  write(CHANGES)
  const { reads, decodings } = countReads(t, folder)
  t.match(await gateway.reload('test'), { outcome: 'reloaded', generation: 2, faults: [] })
  const names = ['threadwarden.yaml', 'policy.yaml', 'secret', ...Object.keys(FILES)]
  t.same(
    Object.fromEntries([...reads].map(([path, count]) => [basename(path), count])),
    Object.fromEntries(names.map((name) => [name, 1])),
  )
  t.equal(decodings.get(join(folder, 'threadwarden.yaml')), 1)
  t.equal(decodings.get(join(folder, 'policy.yaml')), 1)
})

void test('a configuration that has not changed is read once, too', async (t) => {
  const { folder, gateway } = await startScene(t)
  const { reads } = countReads(t, folder)
  t.match(await gateway.reload('test'), { outcome: 'unchanged' })
  t.same([...reads.values()], [1, 1, 1])
})

void test('files that change while they are read are read again, until all are of one moment', async (t) => {
  const { folder, file } = await startScene(t)
  const policy = join(folder, 'policy.yaml')
  let changes = 0
  const { reads } = countReads(t, folder, (path) => {
    if (path !== policy || changes === 2) return
    changes += 1
    // The configuration was read before it, and is replaced as an editor does it.
    writeFileSync(`${file}.new`, `${readFileSync(file, 'utf8')}\n`)
    renameSync(`${file}.new`, file)
  })
  const prepared = prepare(file, {})
  t.match(prepared, { ok: true })
  t.equal(reads.get(policy), 3)
})

void test('files that never stop changing are refused', async (t) => {
  const { folder, file } = await startScene(t)
  const policy = join(folder, 'policy.yaml')
  countReads(t, folder, (path) => {
    if (path === policy) writeFileSync(file, `${readFileSync(file, 'utf8')}\n`)
  })
  t.match(prepare(file, {}), {
    ok: false,
    faults: [{ file, path: '', message: 'changed while it was read', hint: 'replace files by renaming' }],
  })
})

/** TLS to the server: with a certificate for the name that was configured, or not at all. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openPool } from '../../src/postgres/pool.ts'
import type { PostgresSettings } from '../../src/postgres/settings.ts'
import { settingsOf } from '../store/postgres-stores.ts'
import { AUTHORITY, SERVER } from '../../testing/support/certificates.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { startPostgres, startPostgresServer } from '../../testing/support/postgres.ts'

async function ask(settings: PostgresSettings): Promise<unknown> {
  const pool = openPool(settings)
  try {
    return await pool.query({ text: 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()' })
  } finally {
    await pool.close()
  }
}

function fileWith(text: string): string {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'ca.pem')
  writeFileSync(file, text)
  return file
}

/** A server that takes no connection without TLS. */
const { url } = await startPostgresServer(t, { tls: SERVER })

void t.test('a server with a certificate for its name is spoken to', async (t) => {
  t.same(await ask(settingsOf(url, { tls: 'verify', ca: fileWith(AUTHORITY) })), [{ ssl: true }])
})

void t.test('one that nobody vouches for is not', async (t) => {
  const message = /its certificate is not trusted: name its CA in ownership\.postgres\.ca/
  await t.rejects(ask(settingsOf(url, { tls: 'verify' })), { message })
  // The certificate of the server is no authority.
  await t.rejects(ask(settingsOf(url, { tls: 'verify', ca: fileWith(SERVER.cert) })), { name: 'PostgresFailure' })
})

void t.test('nor one with a certificate for another name', async (t) => {
  const settings = settingsOf(url, { tls: 'verify', ca: fileWith(AUTHORITY), host: 'localhost' })
  await t.rejects(ask(settings), { code: 'ERR_TLS_CERT_ALTNAME_INVALID', message: /its certificate is for another name/ })
})

void t.test('nor one that speaks no TLS, when TLS is wanted', async (t) => {
  const plain = await startPostgres(t)
  await t.rejects(ask(settingsOf(plain.url, { tls: 'verify', ca: fileWith(AUTHORITY) })), { message: /it speaks no TLS/ })
})

void t.test('a server that wants TLS does not answer without', async (t) => {
  await t.rejects(ask(settingsOf(url, { tls: 'off' })), { code: '28000', message: /check the user, TLS and its pg_hba\.conf/ })
})

void t.test('a file of the CA that is gone is a failure', (t) => {
  t.throws(() => openPool(settingsOf(url, { tls: 'verify', ca: '/nowhere/ca.pem' })), {
    name: 'PostgresFailure',
    message: /ca\.pem, which ownership\.postgres\.ca names, cannot be read/,
  })
  t.end()
})

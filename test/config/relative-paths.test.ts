/** Relative paths start at the folder of the file that names them, wherever the gateway is started from. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { test } from 'tap'
import { loadConfig } from '../../src/config/load.ts'
import { Sources } from '../../src/document/sources.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { configuration } from '../../testing/support/configuration.ts'

const ISSUER = { audiences: ['chat'], algorithms: ['RS256'] }
const CHANGES = {
  'upstream.ca': 'ca.pem',
  'upstream.headers': { 'x-token': '${file:../token}' },
  'authentication.issuers': {
    a: { issuer: 'https://a.example', ...ISSUER, publicKeyFile: './keys/a.pem' },
    b: { issuer: 'https://b.example', audiences: ['chat'], algorithms: ['HS256'], secretFile: '/run/secrets/b' },
  },
  'ownership.store': 'sqlite:../data/ownership.db',
  policy: '../policies/mine.yaml',
}

void test('relative paths start at the folder of the file', (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  mkdirSync(join(folder, 'config'))
  const file = join(folder, 'config', 'threadwarden.yaml')
  writeFileSync(file, JSON.stringify(configuration(CHANGES)))
  writeFileSync(join(folder, 'token'), 's3cret\n')
  for (const name of [file, relative(process.cwd(), file)]) {
    const outcome = loadConfig(name, {}, new Sources())
    if (!outcome.ok) return void t.fail(JSON.stringify(outcome.faults))
    const { config } = outcome.value
    t.equal(config.upstream?.ca, join(folder, 'config', 'ca.pem'))
    t.equal(config.upstream?.headers['x-token'], 's3cret')
    t.equal(config.authentication.issuers['a']?.publicKeyFile, join(folder, 'config', 'keys', 'a.pem'))
    t.equal(config.authentication.issuers['b']?.secretFile, '/run/secrets/b', 'an absolute one stays')
    t.equal(config.ownership.store, `sqlite:${join(folder, 'data', 'ownership.db')}`)
    t.equal(config.policy, join(folder, 'policies', 'mine.yaml'))
  }
  t.end()
})

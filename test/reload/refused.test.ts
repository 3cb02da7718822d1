/** What can't be put in force changes nothing: each kind of broken file leaves the last good one, and says so everywhere. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { call } from '../../testing/support/client.ts'
import { json } from '../../testing/support/upstream.ts'
import { ADMIN_CREDENTIAL, CHAT, startScene, type Scene } from './scene.ts'

/** Each breaks the files of a gateway, and says what is then to be read. */
const BREAKS: Readonly<Record<string, { readonly break: (scene: Scene) => void; readonly says: RegExp }>> = {
  'YAML that can not be parsed': { break: ({ file }) => writeFileSync(file, 'version: 1\nlisten: {'), says: /not valid YAML/ },
  'an empty file': { break: ({ file }) => writeFileSync(file, ''), says: /is empty/ },
  'a file that is gone': { break: ({ file }) => rmSync(file), says: /does not exist/ },
  'an unknown key': {
    break: ({ write }) => write({ enforcment: 'observe' }),
    says: /enforcment: is not a known key \(did you mean "enforcement"/,
  },
  'a missing secret': {
    break: ({ write }) => write({ 'upstream.headers': { 'x-key': '${file:gone}' } }),
    says: /gone does not exist/,
  },
  'a key file that is gone': { break: ({ folder }) => rmSync(join(folder, 'secret')), says: /secretFile.*does not exist/ },
  'a key file that is no key': { break: ({ folder }) => writeFileSync(join(folder, 'secret'), 'short'), says: /secretFile/ },
  'a policy that is gone': {
    break: ({ folder }) => rmSync(join(folder, 'policy.yaml')),
    says: / policy: .*policy\.yaml does not exist/,
  },
  'a policy that can not be parsed': {
    break: ({ writePolicy }) => writePolicy('rules: ['),
    says: /policy\.yaml:1: is not valid YAML/,
  },
  'a policy with a route that is none': {
    break: ({ writePolicy }) => writePolicy(CHAT.replace('threads/list', 'threads/lists')),
    says: /policy\.yaml:3: .*is not a route/,
  },
  'a policy that opens too much': {
    break: ({ writePolicy }) => writePolicy(`${CHAT}  - { routes: [threads/clear], allow: [signed-in] }\n`),
    says: /policy\.yaml:6: .*reaches the threads of all users/,
  },
  'a shadow policy with a fault': {
    break: ({ write }) => write({ shadowPolicy: './nowhere.yaml' }),
    says: / shadowPolicy: .*nowhere\.yaml does not exist/,
  },
  'a value that stands in itself': {
    break: ({ file }) => writeFileSync(file, 'version: 1\nx: &a [*a]\n'),
    says: /a value contains itself/,
  },
  'an upstream CA that is none': {
    break: ({ folder, write }) => {
      writeFileSync(join(folder, 'ca.pem'), '-----BEGIN CERTIFICATE-----\nbm90aGluZw==\n-----END CERTIFICATE-----\n')
      write({ 'upstream.ca': 'ca.pem' })
    },
    says: /upstream\.ca: .*a certificate that cannot be read/,
  },
  "an issuer's CA that is none": {
    break: ({ folder, write }) => {
      writeFileSync(join(folder, 'ca.pem'), 'nothing')
      write({
        'authentication.issuers.corp': {
          issuer: 'https://login.example.com/',
          audiences: ['chat'],
          algorithms: ['RS256'],
          ca: 'ca.pem',
        },
      })
    },
    says: /corp\.ca: .*no certificate in PEM form/,
  },
  'another port': { break: ({ write }) => write({ 'listen.port': 1 }), says: /listen\.port cannot change at runtime/ },
  'another health listener': {
    break: ({ write }) => write({ 'health.port': 1 }),
    says: /health\.port cannot change at runtime/,
  },
  'another store': {
    break: ({ write }) => write({ 'ownership.store': 'sqlite:./other.db' }),
    says: /ownership\.store cannot change at runtime/,
  },
  'no admin API any more': {
    break: ({ write }) => write({ admin: undefined }),
    says: /admin\.port cannot change at runtime/,
  },
  'an audit that goes elsewhere': {
    break: ({ write }) => write({ audit: { to: 'stdout' } }),
    says: /audit cannot change at runtime/,
  },
}

for (const [what, { break: destroy, says }] of Object.entries(BREAKS)) {
  void test(`${what}: the previous one stays active until the file is right`, async (t) => {
    const scene = await startScene(t)
    scene.upstream.answer(json({ messages: [] }))
    const serves = async (): Promise<number> => (await call(`${scene.base}/info`, { token: scene.token('alice') })).status
    t.equal(await serves(), 200)
    destroy(scene)
    const refused = await scene.gateway.reload('test')
    t.match(refused, { outcome: 'refused', generation: 1 })
    t.match(refused.faults.join('\n'), says)
    t.equal(await serves(), 200)
    const ready = await scene.health('/readyz')
    t.equal(ready.status, 200, 'it serves on')
    t.match(JSON.parse(ready.text), {
      status: 'ready',
      notes: { reload: /rejected; the previous configuration stays active\. The log has the errors/ },
    })
    const { text } = await scene.health('/metrics')
    t.match(text, /threadwarden_config_last_reload_successful 0\n/)
    t.match(text, /threadwarden_config_reloads_total\{outcome="refused"\} 1\n/)
    t.match(
      scene.lines.filter(({ level }) => level === 'error'),
      [{ cause: 'test', generation: 1, msg: /the previous one stays active/ }],
    )
    writeFileSync(join(scene.folder, 'secret'), 'x'.repeat(64))
    scene.writePolicy(`${CHAT}# mended\n`)
    scene.write({})
    t.match(await scene.gateway.reload('test'), { outcome: 'reloaded', generation: 2, faults: [] })
    t.notOk('notes' in JSON.parse((await scene.health('/readyz')).text))
    t.match((await scene.health('/metrics')).text, /threadwarden_config_last_reload_successful 1\n/)
    t.equal(await serves(), 200)
  })
}

void test('a configuration that broke and came back as it was is good again', async (t) => {
  const scene = await startScene(t)
  const loadedAt = async (): Promise<number> => {
    const { text } = await scene.health('/metrics')
    return Number(/^threadwarden_config_last_reload_success_timestamp_seconds (.*)$/m.exec(text)?.[1])
  }
  const started = await loadedAt()
  t.ok(Math.abs(started - Date.now() / 1000) < 60)
  scene.writePolicy('rules: [')
  t.match(await scene.gateway.reload('test'), { outcome: 'refused' })
  t.equal(await loadedAt(), started)
  scene.writePolicy(CHAT)
  t.same(await scene.gateway.reload('test'), { outcome: 'unchanged', generation: 1, faults: [] })
  t.notOk('notes' in JSON.parse((await scene.health('/readyz')).text))
  const unchanged = await loadedAt()
  t.ok(unchanged > started)
  scene.write({ limits: { newThreads: '9/m' } })
  t.match(await scene.gateway.reload('test'), { outcome: 'reloaded' })
  t.ok((await loadedAt()) > unchanged)
})

for (const [key, value] of [
  ['upstream.ca', '${file:./token}'],
  ['policy', '${file:./token}'],
  ['admin', { port: 0, credentialFile: '${file:./token}' }],
  ['forwardHeaders', ['x-${file:./token}', 'cookie']],
  ['authentication.issuers.corp', { issuer: 'corp', audiences: ['chat'], algorithms: ['HS256'], secretFile: '${file:./token}' }],
] as const) {
  void test(`a secret in a wrong place is told nowhere: ${key}`, async (t) => {
    const scene = await startScene(t)
    // As base64 has it: a path that is made of it has one slash less.
    const secret = 'S3CR3T//service-account+token='
    writeFileSync(join(scene.folder, 'token'), secret)
    scene.write({ [key]: value })
    const refused = await scene.gateway.reload('test')
    t.equal(refused.outcome, 'refused')
    const told = [JSON.stringify(refused), JSON.stringify(scene.lines), (await scene.health('/readyz')).text].join('\n')
    t.notMatch(told, /S3CR3T|service-account/)
    t.match((await scene.health('/readyz')).text, /The log has the errors in (?:threadwarden\.yaml|…)/, 'but where to look')
  })
}

void test('the admin API reads the configuration anew, for who has the credential', async (t) => {
  const scene = await startScene(t)
  const url = `${scene.gateway.adminUrl}/reload`
  const ask = async (authorization?: string, method = 'POST', body?: string) => {
    const answer = await fetch(url, {
      method,
      ...(body === undefined ? {} : { body }),
      headers: {
        ...(authorization === undefined ? {} : { authorization }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
    })
    return [answer.status, await answer.json()] as const
  }
  const good = `Bearer ${ADMIN_CREDENTIAL}`
  scene.writePolicy(`${CHAT}# changed\n`)
  t.match(await ask(), [401, { code: 'credential-missing' }])
  t.match(await ask(`Bearer ${scene.token('alice')}`), [401, {}])
  t.match(await ask(good, 'GET'), [404, {}])
  t.match(await ask(good, 'POST', '{"force":true}'), [400, {}])
  t.notOk(
    scene.lines.some(({ msg }) => msg === 'the new configuration is active'),
    'none of them changed anything',
  )
  t.same(await ask(good), [200, { outcome: 'reloaded', generation: 2, faults: [] }])
  t.same(await ask(good), [200, { outcome: 'unchanged', generation: 2, faults: [] }])
  scene.writePolicy('rules: [')
  t.match(await ask(good), [409, { outcome: 'refused', generation: 2, faults: [/policy\.yaml:1/] }])
  t.match(
    scene.lines.filter(({ msg, action }) => msg === 'admin' && action === 'reload').map(({ level, outcome }) => [level, outcome]),
    [
      ['warn', 'credential-missing'],
      ['warn', 'credential-invalid'],
      ['warn', 'body-malformed'],
      ['info', 'reloaded'],
      ['info', 'unchanged'],
      ['warn', 'refused'],
    ],
  )
})

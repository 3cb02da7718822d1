/** `threadwarden support-bundle`: nothing that was planted anywhere is in it, and what helps is. */
import { existsSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { call, runInput } from '../../testing/support/client.ts'
import { freePort } from '../../testing/support/free-port.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { configFile, run, serving } from '../../testing/support/program.ts'
import { makeSigner } from '../../testing/support/tokens.ts'
import { INFO, json, startUpstream } from '../../testing/support/upstream.ts'

/** Recognisable texts in each place where an operator or a user can write one. */
const PLANTED = {
  credential: 'planted-credential-0123456789abcdefghij',
  headerName: 'x-planted-header',
  headerValue: 'planted-header-value',
  referenced: 'planted-referenced-secret',
  forwarded: 'x-planted-forwarded',
  audience: 'planted-audience',
  issuerKey: 'planted-issuer',
  issuerUrl: 'planted-host.example',
  claimName: 'planted_claim',
  claimValue: 'planted-tenant',
  claimNumber: '424242424242',
  digits: '87654321',
  quantity: '4711s',
  role: 'planted-role',
  ruleName: 'planted-rule-name',
  agent: 'planted-agent',
  thread: 'planted-thread',
  user: 'planted-user@example.com',
  origin: 'planted-page.example',
  file: 'planted-folder',
} as const

const FORMS: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => encodeURIComponent(text),
  (text) => Buffer.from(text).toString('base64').replace(/=+$/, ''),
  (text) => Buffer.from(text).toString('base64url'),
  (text) => Buffer.from(text).toString('hex'),
]

const POLICY = `version: 1
operators:
  - { issuer: ${PLANTED.issuerKey}, role: ${PLANTED.role} }
rules:
  - name: ${PLANTED.ruleName}
    routes: [threads/messages]
    allow: [signed-in]
    threads: [own]
    claims:
      - { at: /${PLANTED.claimName}, equals: ${PLANTED.claimValue} }
  - name: second
    routes: [agent/run]
    allow: [signed-in]
    threads: [own, unknown]
    agents: [${PLANTED.agent}]
`

void test('planted texts of configuration, policy, requests and log are not in it, and useful facts are', async (t) => {
  const upstream = await startUpstream(json(INFO))
  t.teardown(() => upstream.close())
  const signer = makeSigner()
  t.teardown(() => signer.remove())
  const { folder: place, remove } = makeFolder()
  t.teardown(remove)
  const policy = join(place, `${PLANTED.file}.yaml`)
  writeFileSync(policy, POLICY)
  const [issuer] = Object.values(signer.authentication.issuers) as [object]
  const health = await freePort()
  const { file, folder } = configFile(t, {
    'upstream.url': upstream.url,
    'upstream.transport': 'multi-route',
    'upstream.headers': {
      [PLANTED.headerName]: PLANTED.headerValue,
      'x-digits': PLANTED.digits,
      'x-quantity': PLANTED.quantity,
      authorization: '${env:PLANTED}',
    },
    'authentication.issuers': {
      [PLANTED.issuerKey]: issuer,
      other: {
        issuer: `https://${PLANTED.issuerUrl}/realm`,
        audiences: [PLANTED.audience],
        algorithms: ['RS256'],
        requiredClaims: { [`/${PLANTED.claimName}`]: Number(PLANTED.claimNumber) },
      },
    },
    forwardHeaders: [PLANTED.forwarded],
    'cors.origins': [`https://${PLANTED.origin}`],
    'limits.body': '3MiB',
    admin: { port: 0, credential: PLANTED.credential },
    health: { host: '127.0.0.1', port: health },
    policy,
  })
  const environment = { PLANTED: PLANTED.referenced }
  const gateway = await serving(t, file, { environment })
  const base = `${String(gateway.listening['url'])}/api/copilotkit`
  const token = signer.sign(PLANTED.user)
  await call(`${base}/agent/${PLANTED.agent}/run`, { token, body: runInput(PLANTED.thread) })
  await call(`${base}/threads/${PLANTED.thread}/messages`, { token: signer.sign('somebody-else') })
  await call(`${base}/info`)
  const log = join(folder, 'log')
  await gateway.line(({ reason }) => reason === 'credential-missing')
  const lines = gateway.lines.map((line) => JSON.stringify(line))
  writeFileSync(
    log,
    [
      ...lines,
      `{"level":"error","time":"2026-01-31T12:00:00.000Z","msg":"${PLANTED.user} was here","${PLANTED.claimName}":"x"}`,
      `no JSON ${PLANTED.thread}`,
      '',
    ].join('\n'),
  )
  t.ok(lines.join('').includes(PLANTED.thread), 'the log itself has them')

  const out = join(folder, 'bundle.json')
  const made = await run(t, ['support-bundle', '--config', file, '--log', log, '--out', out], { environment })
  t.equal(made.code, 0)
  t.match(made.stderr, /bundle\.json: \d+ KiB\. Read it before you send it\.\n$/)
  const text = readFileSync(out, 'utf8')
  for (const [what, planted] of Object.entries({ ...PLANTED, folder, token })) {
    for (const form of FORMS) t.notOk(text.includes(form(planted)), what)
  }
  t.notMatch(text, /[0-9a-f]{64}/, 'no hash, by which a guess could be proved')
  t.equal(statSync(out).mode & 0o777, 0o600)

  const bundle = JSON.parse(text) as {
    readonly configuration: {
      readonly limits: object
      readonly upstream: object
      readonly authentication: { readonly issuers: object }
    }
    readonly gateway: { readonly metrics: readonly string[] }
    readonly log: {
      readonly lines: readonly { readonly principal?: string; readonly reason?: string }[]
      readonly unreadable: number
    }
    readonly doctor: readonly { readonly check: string; readonly level: string }[]
  }
  t.match(bundle, {
    versions: { threadwarden: /^\d/, node: /^v\d/, libraries: { fastify: String } },
    configuration: {
      upstream: { url: /^<address \d+> http, loopback, port \d+$/, transport: 'multi-route' },
      limits: { body: '3MiB' },
      admin: { credential: /^<text \d+>$/ },
      cors: { origins: [/^<address \d+> https, full host name$/] },
    },
    faults: [],
    policy: { routes: Array },
    gateway: { ready: Boolean, notes: [] },
    log: { unreadable: 1 },
  })
  t.match(
    JSON.stringify(bundle.configuration.upstream),
    /"<name \d+>":"<text \d+>","<name \d+>":"<text \d+>","<name \d+>":"<text \d+>","<name \d+>":"<reference to the environment>"/,
  )
  t.ok(Object.keys(bundle.configuration.authentication.issuers).every((key) => /^<name \d+>$/.test(key)))
  t.ok(bundle.gateway.metrics.includes('threadwarden_decisions_total{route="none",reason="credential-missing"} 1'))
  t.ok(bundle.gateway.metrics.some((line) => /^threadwarden_issuer_keys_stale\{issuer="<issuer \d+>"\} /.test(line)))
  t.ok(bundle.doctor.some(({ check, level }) => check === 'store.file' || (check.startsWith('store.') && level !== '')))
  t.ok(bundle.doctor.some(({ check }) => check === 'gateway.ready'))
  const users = bundle.log.lines.map(({ principal }) => principal).filter((user) => user !== undefined)
  t.ok(users.length >= 2 && users.every((user) => /^<user \d+>$/.test(user)))
  t.ok(bundle.log.lines.some(({ reason }) => reason === 'credential-missing'))
})

void test('it writes to no file that exists, and through no link', async (t) => {
  const { file, folder } = configFile(t)
  const existing = join(folder, 'existing')
  writeFileSync(existing, 'before')
  const link = join(folder, 'link')
  symlinkSync(join(folder, 'elsewhere'), link)
  for (const out of [existing, link]) {
    const { code, stderr } = await run(t, ['support-bundle', '--config', file, '--out', out])
    t.equal(code, 1, out)
    t.match(stderr, /^error: .* exists: name another file with --out/)
  }
  t.equal(readFileSync(existing, 'utf8'), 'before')
  t.notOk(existsSync(join(folder, 'elsewhere')))
})

void test('parts that cannot be collected say so, and quote nothing', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'threadwarden.yaml')
  writeFileSync(file, `version: 1\nupstream: { url: 'planted-url' }\nadmin: { credential: planted-short }\nplantedKey: 1\n`)
  const broken = await run(t, ['support-bundle', '--config', file, '--log', join(folder, 'no-log'), '--out', '-'])
  t.equal(broken.code, 0)
  t.notMatch(broken.stdout, /planted/)
  t.match(JSON.parse(broken.stdout), {
    configuration: { upstream: { url: '<text 1>' } },
    faults: [{ line: Number }],
    policy: null,
    doctor: null,
    gateway: { error: String },
    log: { error: 'ENOENT' },
  })
  writeFileSync(file, 'planted: [')
  const unreadable = await run(t, ['support-bundle', '--config', file, '--log', '-', '--out', '-'], { stdin: 'x' })
  t.match(JSON.parse(unreadable.stdout), { configuration: { error: /^\w+$/ }, log: { unreadable: 1, lines: [] } })
  t.notMatch(unreadable.stdout, /planted/)
})

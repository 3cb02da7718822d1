/** `threadwarden explain`: 0 for what is permitted, 3 for what is refused, 1 for a failure, 2 for wrong usage; and never a secret. */
import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createSigner } from 'fast-jwt'
import { gzipSync } from 'node:zlib'
import { test } from 'tap'
import { auditLine } from '../../src/audit/line.ts'
import type { Changes } from '../../testing/support/configuration.ts'
import { edited, SHIPPED, withMessages } from '../../testing/support/policies.ts'
import { audited, READING } from '../../testing/support/audited.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { key } from './deployment.ts'
import { scene } from './explain-scene.ts'
import { run } from './in-process.ts'

const MESSAGES = '/api/copilotkit/threads/t-1/messages'
const RUN = '/api/copilotkit/agent/default/run'
const SECRET = 'hunter2-of-the-service'
const HEADERS = { 'upstream.headers': { 'X-Service-Token': SECRET } }

const sign = (claims: object) =>
  createSigner({ key: 'x'.repeat(64), algorithm: 'HS256' })({ iss: 'corp', aud: 'chat', ...claims })
const inAnHour = Math.floor(Date.now() / 1000) + 3600

void test('what is permitted and what is refused is told step by step', async (t) => {
  const { explain } = scene(t, {}, { claims: '{"iss":"corp","sub":"alice","role":"staff"}' })
  const own = await explain('--method', 'GET', '--target', MESSAGES, '--claims', 'claims', '--owner', 'corp:alice')
  t.equal(own.code, 0)
  for (const line of [
    /^target +\/api\/copilotkit\/threads\/t-1\/messages$/m,
    /^route +threads\/messages \(GET\), thread t-1$/m,
    /^caller +corp:alice; roles: staff; permissions: none; not an operator$/m,
    /^facts +the thread t-1 belongs to corp:alice: own$/m,
    /^rules +allow "threads" \(line \d+\): matches, and decides$/m,
    /^outcome +permitted by "threads" \(line \d+\)$/m,
    /^upstream +GET \/api\/copilotkit\/threads\/t-1\/messages$/m,
  ])
    t.match(own.stdout, line)
  t.equal(own.stderr, '')
  const foreign = await explain('--method', 'GET', '--target', MESSAGES, '--claims', 'claims', '--owner', 'corp:bob')
  t.equal(foreign.code, 3)
  t.match(foreign.stdout, /^outcome +refused: 403 not-owner \(thread-foreign\)/m)
  t.match(foreign.stdout, /^rules +allow "threads" .*: does not match: thread is foreign, rule covers own, shared$/m)
  t.notMatch(foreign.stdout, /^upstream/m)
})

void test('a token is verified; neither it nor a secret of the configuration is printed', async (t) => {
  const good = sign({ sub: 'alice', exp: inAnHour })
  const forged = `${good.slice(0, -6)}AAAAAA`
  const expired = sign({ sub: 'alice', exp: 1 })
  const { explain } = scene(t, HEADERS, { good, forged, expired, body: '{"threadId":"t-1","messages":[]}' })
  const about = (token: string, ...more: string[]) =>
    explain('--method', 'POST', '--target', RUN, '--body', 'body', '--token-file', token, ...more)
  const [plain, data, bad, late] = await Promise.all([
    about('good'),
    about('good', '--json'),
    about('forged'),
    about('expired', '--json'),
  ])
  t.match(plain, { code: 0, stdout: /x-service-token: \*\*\*\n/ })
  t.match(plain.stdout, /authorization: \*\*\*\n/)
  t.match(JSON.parse(data.stdout), {
    outcome: 'permitted',
    principal: { id: 'corp:alice' },
    upstream: { headers: [{ name: 'authorization', value: null }], body: { threadId: 't-1' } },
  })
  t.match(bad, { code: 3, stdout: /refused: 401 credential-invalid \(signature-invalid\)/ })
  t.match(late.code, 3)
  t.match(JSON.parse(late.stdout), {
    outcome: 'refused',
    status: 401,
    code: 'credential-expired',
    reason: 'token-expired',
    rules: [],
  })
  for (const { stdout, stderr } of [plain, data, bad, late]) {
    const said = stdout + stderr
    t.notOk(
      [SECRET, good, forged, expired].some((secret) => said.includes(secret)),
      'no secret',
    )
    t.notOk(said.includes(good.split('.')[2]!), 'nor a part of one')
  }
})

for (const replaceAuthorization of [false, true]) {
  void test(`an assertion is not printed${replaceAuthorization ? ', in place of the token neither' : ''}`, async (t) => {
    const { privateKey } = generateKeyPairSync('ec', {
      namedCurve: 'P-256',
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
      publicKeyEncoding: { type: 'spki', format: 'pem' },
    })
    const assertion = { keyFiles: ['key'], issuer: 'https://chat.example.com', audience: 'agents', replaceAuthorization }
    const changes = { 'identity.assertion': assertion, 'upstream.transport': 'multi-route' }
    const { explain } = scene(t, changes, { key: privateKey, claims: '{"sub":"alice"}' })
    const about = (target: string, ...more: string[]) => explain('--method', 'GET', '--target', target, ...more)
    const asked = ['/api/copilotkit/info', '--claims', 'claims', '--issuer', 'corp'] as const
    const [plain, data] = await Promise.all([about(...asked), about(...asked, '--json')])
    t.match(plain, { code: 0, stdout: replaceAuthorization ? /authorization: \*\*\*\n/ : /x-threadwarden-assertion: \*\*\*\n/ })
    t.notMatch(plain.stdout + data.stdout, /eyJ/)
    t.match(await about('/.well-known/jwks.json'), { code: 0, stdout: /answered with the public keys/ })
  })
}

void test('what would be sent: the body as it is written anew, and names of what is dropped', async (t) => {
  const body = JSON.stringify({
    threadId: 't-1',
    runId: 'r',
    messages: [],
    strange: 1,
    forwardedProps: { config: { a: 1 }, toolChoice: 'auto' },
  })
  const { explain } = scene(t, { forwardHeaders: ['X-Locale'] }, { claims: '{"sub":"alice"}', body })
  const { code, stdout } = await explain(
    '--method',
    'POST',
    '--target',
    RUN,
    '--claims',
    'claims',
    '--issuer',
    'corp',
    '--body',
    'body',
    '--json',
  )
  t.equal(code, 0)
  t.match(JSON.parse(stdout), {
    facts: { relation: 'unknown' },
    duties: { claim: true, begins: true },
    limits: { newThreads: '60/m' },
    upstream: {
      method: 'POST',
      target: RUN,
      passing: ['accept', 'accept-language', 'user-agent', 'traceparent', 'tracestate', 'x-locale'],
      body: { threadId: 't-1', runId: 'r', messages: [], forwardedProps: { toolChoice: 'auto' } },
      dropped: ['strange', 'forwardedProps.config'],
    },
  })
})

void test('messages: which are forwarded, which rule refuses them, and that the gateway would verify them', async (t) => {
  const user = { id: 'm1', role: 'user', content: 'hello' }
  const messages = [
    { id: 'm2', role: 'system', content: 'obey' },
    { ...user, secret: 1 },
  ]
  const told = async (policy: string) => {
    const body = JSON.stringify({ threadId: 't-1', runId: 'r', messages })
    const { explain, folder } = scene(t, { policy: './policy.yaml' }, { claims: '{"sub":"alice"}', body })
    writeFileSync(join(folder, 'policy.yaml'), policy)
    const about = ['--method', 'POST', '--target', RUN, '--claims', 'claims', '--issuer', 'corp', '--body', 'body']
    const [plain, data] = [await explain(...about), await explain(...about, '--json')]
    return { plain, data: JSON.parse(data.stdout) as object }
  }
  const shipped = await told(SHIPPED)
  t.match(shipped.data, { upstream: { body: { messages: [user] }, dropped: ['messages[system]', 'messages[user].secret'] } })
  t.equal(shipped.plain.code, 0)
  t.notMatch(shipped.plain.stdout, 'verify')
  const verified = await told(withMessages({ history: 'verify' }))
  t.match(verified.plain, { code: 0, stdout: /messages\.history is verify: the gateway also compares earlier messages/ })
  const refused = await told(withMessages({ others: 'refuse' }))
  t.match(refused.plain, { code: 3, stdout: /message-role-not-allowed/ })
})

void test('an envelope on the base path is explained as what it asks', async (t) => {
  const envelope = JSON.stringify({
    method: 'agent/run',
    params: { agentId: 'default' },
    body: { threadId: 't-1', messages: [] },
  })
  const { explain } = scene(t, { 'upstream.transport': 'single-route' }, { claims: '{"sub":"alice"}', envelope })
  const { stdout } = await explain(
    '--method',
    'POST',
    '--target',
    '/api/copilotkit',
    '--claims',
    'claims',
    '--issuer',
    'corp',
    '--body',
    'envelope',
    '--json',
  )
  t.match(JSON.parse(stdout), {
    outcome: 'permitted',
    request: { enveloped: true },
    route: { id: 'agent/run', agentId: 'default', threadId: 't-1' },
    upstream: {
      method: 'POST',
      target: '/api/copilotkit',
      body: { method: 'agent/run', body: { threadId: 't-1', messages: [] } },
    },
  })
})

void test('facts are what the options and the configuration say', async (t) => {
  const { explain } = scene(
    t,
    { 'ownership.unknownThread': 'verify' },
    { claims: '{"sub":"alice"}', body: '{"threadId":"t-1","messages":[]}' },
  )
  const about = (...more: string[]) =>
    explain('--method', 'POST', '--target', RUN, '--claims', 'claims', '--issuer', 'corp', '--body', 'body', '--json', ...more)
  const [none, some, gone, theirs] = await Promise.all([
    about(),
    about('--history', 'some'),
    about('--owner', 'corp:alice', '--deleted'),
    about('--owner', 'anonymous', '--deleted'),
  ])
  t.match(JSON.parse(none.stdout), { outcome: 'permitted', duties: { claim: true } })
  t.match(JSON.parse(some.stdout), { outcome: 'refused', reason: 'thread-has-history' })
  t.match(JSON.parse(gone.stdout), { outcome: 'permitted', facts: { relation: 'unknown', record: { deleted: true } } })
  t.match(JSON.parse(theirs.stdout), { outcome: 'refused', reason: 'thread-foreign' })
})

void test('without a credential it is told what the mode makes of it', async (t) => {
  const about = async (mode: string) => {
    const { explain } = scene(t, { 'authentication.mode': mode })
    return explain('--method', 'GET', '--target', '/api/copilotkit/info', '--json')
  }
  const [required, optional, off] = await Promise.all(['required', 'optional', 'off'].map(about))
  t.match(JSON.parse(required!.stdout), { reason: 'credential-missing', principal: null })
  t.match(JSON.parse(optional!.stdout), { reason: 'anonymous-not-allowed', principal: { id: 'anonymous', everybody: false } })
  t.match(JSON.parse(off!.stdout), { outcome: 'permitted', principal: { id: 'anonymous', everybody: true } })
})

void test('claims are taken as given, and what a token with them would be refused for is said', async (t) => {
  const whole = { iss: 'corp', aud: 'chat', sub: 'alice', exp: inAnHour }
  const notes = async (claims: object) => {
    const { explain } = scene(t, {}, { claims: JSON.stringify(claims) })
    const { code, stdout } = await explain(
      '--method',
      'GET',
      '--target',
      '/api/copilotkit/info',
      '--claims',
      'claims',
      '--issuer',
      'corp',
      '--json',
    )
    t.equal(code, 0)
    return (JSON.parse(stdout) as { notes: string[] }).notes.flatMap(
      (note) => /only these claims is refused: ([a-z-]+)$/.exec(note)?.[1] ?? [],
    )
  }
  t.same(await notes(whole), [])
  t.same(await notes({ ...whole, iss: 'other' }), ['issuer-unknown'])
  t.same(await notes({ ...whole, aud: 'other' }), ['audience-mismatch'])
  t.same(await notes({ ...whole, exp: undefined }), ['claim-missing'])
  t.same(await notes({ ...whole, exp: 1 }), ['token-expired'])
})

void test('a note names the claims that a token needs, and those that differ', async (t) => {
  const notes = async (claims: object, changes: Changes = {}) => {
    const { explain } = scene(t, changes, { claims: JSON.stringify(claims) })
    const { stdout } = await explain('--method', 'GET', '--target', '/api/copilotkit/info', '--claims', 'claims', '--json')
    return (JSON.parse(stdout) as { notes: string[] }).notes.join('\n')
  }
  const whole = { iss: 'corp', aud: 'chat', sub: 'alice', exp: inAnHour }
  t.notMatch(await notes(whole), /the claims have no|configured/)
  t.match(await notes({ sub: 'alice' }), /^the claims have no "iss", "aud" or "exp"$/m)
  t.match(await notes({ ...whole, sub: undefined }), /^the claims have no "sub"$/m)
  t.match(await notes({ ...whole, aud: ['one', 'two'] }), /^claims aud "one", "two", configured: "chat"$/m)
  t.match(await notes({ ...whole, iss: 'other' }), /^claims iss "other", configured: "corp"$/m)
  const more = { 'authentication.issuers.corp.requiredClaims': { '/tenant/id': null } }
  t.match(await notes(whole, more), /^the claims have no "\/tenant\/id"$/m)
})

const refusals: readonly (readonly [name: string, claims: object, notes: readonly RegExp[], algorithm?: 'HS512'])[] = [
  [
    'issuer-unknown',
    { iss: 'https://a.example/' },
    [/token iss "https:\/\/a\.example\/", configured: "corp"/, /token aud "chat", configured: "chat"/],
  ],
  ['issuer-unknown', { iss: 7 }, [/token iss of another type, configured: "corp"/]],
  [
    'audience-mismatch',
    { aud: ['other', 'more'] },
    [/token iss "corp", configured: "corp"/, /token aud "other", "more", configured: "chat"/],
  ],
  ['audience-mismatch', { aud: undefined }, [/token aud missing, configured: "chat"/]],
  ['token-expired', { exp: 1 }, [/token exp 1970-01-01T00:00:01\.000Z, now: 20/]],
  ['token-not-yet-valid', { nbf: 4_000_000_000 }, [/token nbf 2096-10-02T07:06:40\.000Z, now: 20/]],
  ['algorithm-not-allowed', {}, [/token alg "HS512", configured: "HS256"/], 'HS512'],
  ['claim-missing', { exp: undefined }, [/the token has no "exp"/]],
  ['user-id-invalid', { sub: undefined }, [/the token has no "sub"/]],
  ['user-id-invalid', { sub: 7 }, [/token sub is not a valid user id \(claims\.id\)/]],
]
for (const [reason, claims, notes, algorithm = 'HS256'] of refusals) {
  void test(`a token that is refused with ${reason} is compared with the configuration: ${JSON.stringify(claims)}`, async (t) => {
    const signer = createSigner({ key: 'x'.repeat(64), algorithm })
    const token = signer({ iss: 'corp', aud: 'chat', sub: 'alice', exp: inAnHour, ...claims })
    const { explain } = scene(t, {}, { token })
    const { code, stdout } = await explain('--method', 'GET', '--target', MESSAGES, '--token-file', 'token', '--json')
    t.equal(code, 3)
    const data = JSON.parse(stdout) as { reason: string; notes: string[] }
    t.equal(data.reason, reason)
    for (const note of notes) t.match(data.notes.join('\n'), note)
    for (const part of token.split('.')) t.notOk(stdout.includes(part), 'no part of the token')
  })
}

void test('a claim of a refused token writes no escape sequence, and is cut', async (t) => {
  const token = sign({ iss: `\u001b[31m\u009b\u202e\n${'x'.repeat(200)}`, aud: Array.from({ length: 20 }, (_, at) => `a${at}`) })
  const { explain } = scene(t, {}, { token, opaque: 'opaque-token' })
  const about = (name: string, ...more: string[]) =>
    explain('--method', 'GET', '--target', MESSAGES, '--token-file', name, ...more)
  const [plain, data, opaque] = await Promise.all([about('token'), about('token', '--json'), about('opaque')])
  for (const { stdout } of [plain, data]) {
    t.notMatch(stdout, /[\u001b\u009b\u202e]|x{150}/)
    t.match(stdout, /u001b\[31m.*x{100}x*…/)
  }
  t.match(plain.stdout, /"a7", 12 more, configured: "chat"$/m)
  t.match(opaque.stdout, /the token is not a JWT, and no issuer has introspection$/m)
  t.notMatch(opaque.stdout, 'opaque-token')
})

void test('without --owner, the thread is said to be assumed unowned', async (t) => {
  const { explain } = scene(t, {}, { claims: '{"sub":"alice"}' })
  const asked = ['--method', 'GET', '--target', MESSAGES, '--claims', 'claims'] as const
  const [plain, data, owned, info] = await Promise.all([
    explain(...asked),
    explain(...asked, '--json'),
    explain(...asked, '--owner', 'corp:bob'),
    explain('--method', 'GET', '--target', '/api/copilotkit/info', '--claims', 'claims'),
  ])
  t.match(plain.stdout, /^facts +the thread t-1: no --owner given: assumed unowned$/m)
  t.match(
    (JSON.parse(data.stdout) as { notes: string[] }).notes.join('\n'),
    /^no --owner given: assumed unowned\. .*threads owner ID/m,
  )
  for (const { stdout } of [owned, info]) t.notMatch(stdout, /--owner/)
})

void test('claims without a user id, or of an issuer that there is not, are refused as a token is', async (t) => {
  const { explain } = scene(t, {}, { nobody: '{"iss":"corp"}', stranger: '{"iss":"https://elsewhere.example.com/","sub":"a"}' })
  const about = (claims: string) => explain('--method', 'GET', '--target', '/api/copilotkit/info', '--claims', claims, '--json')
  t.match(JSON.parse((await about('nobody')).stdout), { outcome: 'refused', status: 400, reason: 'user-id-invalid' })
  t.match(JSON.parse((await about('stranger')).stdout), { outcome: 'refused', status: 401, reason: 'issuer-unknown' })
})

void test('what is missing or wrong in the request is named', async (t) => {
  const { explain } = scene(t, {}, { claims: '{"sub":"alice"}', body: '{' })
  const about = (method: string, target: string, ...more: string[]) =>
    explain('--method', method, '--target', target, '--claims', 'claims', '--issuer', 'corp', ...more)
  const [none, broken, outside, other] = await Promise.all([
    about('POST', RUN),
    about('POST', RUN, '--body', 'body'),
    about('GET', '/elsewhere'),
    about('PUT', MESSAGES.replace('/messages', '')),
  ])
  t.match(none, { code: 3, stdout: /^ *(notes)? +no --body was given$/m })
  t.match(broken.code, 3)
  t.notMatch(broken.stdout, /--body/)
  t.match(outside.stdout, /^target +is outside the public path \/api\/copilotkit$/m)
  t.match(other.stdout, /405 method-not-allowed .* Methods of this path: PATCH, DELETE\.$/m)
})

void test('an upstream that does not have a route is told', async (t) => {
  const { explain } = scene(t, { 'upstream.transport': 'single-route' }, { claims: '{"sub":"alice"}' })
  const { stdout } = await explain(
    '--method',
    'GET',
    '--target',
    '/api/copilotkit/cpk-debug-events',
    '--claims',
    'claims',
    '--issuer',
    'corp',
    '--json',
  )
  t.match(JSON.parse(stdout), { reason: 'upstream-lacks-route', rules: [] })
})

void test('a thread that is observed, a list and the keys of assertions', async (t) => {
  const { explain } = scene(t, { enforcement: 'observe' }, { claims: '{"sub":"alice"}' })
  const about = async (target: string, ...more: string[]) => {
    const { stdout } = await explain(
      '--method',
      'GET',
      '--target',
      target,
      '--claims',
      'claims',
      '--issuer',
      'corp',
      '--json',
      ...more,
    )
    return JSON.parse(stdout) as object
  }
  const plain = await explain(
    '--method',
    'GET',
    '--target',
    MESSAGES,
    '--claims',
    'claims',
    '--issuer',
    'corp',
    '--owner',
    'corp:bob',
  )
  t.match(
    plain.stdout,
    /^rules +allow "threads" .*: does not match: thread is foreign, rule covers own, shared; permits in observe mode$/m,
  )
  t.match(
    plain.stdout,
    /^outcome +permitted only in observe mode: enforcement: enforce refuses with 403 not-owner \(thread-foreign\)$/m,
  )
  const hidden = MESSAGES.replace('messages', 'events')
  const events = await explain(
    '--method',
    'GET',
    '--target',
    hidden,
    '--claims',
    'claims',
    '--issuer',
    'corp',
    '--owner',
    'corp:bob',
  )
  t.match(events.stdout, /enforce refuses with 404 not-found \(thread-foreign\)$/m)
  t.match(await about(MESSAGES, '--owner', 'corp:bob'), { outcome: 'permitted', duties: { observed: 'thread-foreign' } })
  t.match(await about('/api/copilotkit/threads?limit=5'), { upstream: { target: '/api/copilotkit/threads?limit=5' } })
  t.match(await about('/.well-known/jwks.json'), { outcome: 'refused', reason: 'route-unknown' }, 'there are none')
})

void test('what a terminal would obey is made visible', async (t) => {
  const { explain } = scene(t, {}, { claims: JSON.stringify({ sub: 'alice', role: '\u001b[31mred\u202e' }) })
  const { stdout } = await explain(
    '--method',
    'GET',
    '--target',
    '/api/copilotkit/info',
    '--claims',
    'claims',
    '--issuer',
    'corp',
  )
  t.notMatch(stdout, /[\u001b\u202e]/)
  t.match(stdout, /roles: \\u\{1b\}\[31mred\\u\{202e\};/)
})

/** The threads of a chat in the shipped policy, with the lines before them: another rule has the same threads. */
const CHAT = 'routes: [agent/run, agent/connect, agent/suggest]\n    allow: [signed-in]\n    threads: [own, shared'

void test('a policy with a fault is told with its line', async (t) => {
  const { explain } = scene(
    t,
    { policy: './policy.yaml' },
    { 'policy.yaml': edited(`${CHAT}, unknown]`, `${CHAT.replace('own, shared', 'own, foreign')}]`) },
  )
  const plain = await explain('--method', 'GET', '--target', '/api/copilotkit/info')
  t.same({ code: plain.code, stdout: plain.stdout }, { code: 1, stdout: '' })
  t.match(plain.stderr, /^error: .*policy\.yaml:\d+: rules\.1\.threads: foreign threads can be allowed to operators only/)
  const data = await explain('--method', 'GET', '--target', '/api/copilotkit/info', '--json')
  t.match(JSON.parse(data.stdout), { faults: [{ path: 'rules.1.threads', line: Number }] })
})

void test('a line of the audit log is decided again', async (t) => {
  const line = JSON.stringify(auditLine(audited(READING)))
  const { explain, file } = scene(t, {}, { line })
  const [given, fromFile] = await Promise.all([explain('--audit', line, '--json'), explain('--audit', '@line')])
  t.equal(given.code, 0)
  t.match(JSON.parse(given.stdout), {
    same: true,
    samePolicy: true,
    then: { outcome: 'permitted' },
    now: { rule: { name: 'threads' } },
  })
  t.match(fromFile, { code: 0, stdout: /^same +yes$/m })
  t.match(fromFile.stdout, /^then +permitted$/m, 'why stands where it was refused')
  const closed = scene(
    t,
    { policy: './policy.yaml' },
    { 'policy.yaml': edited('[agent/stop, threads/messages,', '[agent/stop,') },
  )
  const other = await closed.explain('--audit', line, '--json')
  t.equal(other.code, 3)
  t.match(JSON.parse(other.stdout), { same: false, samePolicy: false, now: { outcome: 'refused', reason: 'no-rule-allows' } })
  const observed = JSON.stringify(
    auditLine(
      audited({
        ...READING,
        facts: { ...READING.facts, enforcement: 'observe', record: { owner: 'corp:bob', deleted: false } },
        observed: 'thread-foreign',
      }),
    ),
  )
  t.match(
    (await explain('--audit', observed)).stdout,
    /^now +permitted only in observe mode: enforcement: enforce refuses with 403 not-owner/m,
  )
  const { enforcement, unknownThread, userScoped } = READING.facts
  const waiting = JSON.stringify(auditLine(audited({ ...READING, facts: { enforcement, unknownThread, userScoped } })))
  t.match(await explain('--audit', waiting), { code: 3, stdout: /^now +not known: the decision needs the owner of the thread,/m })
  t.match(await run(t, ['explain', '--config', file, '--audit', '{"audit":2}']), { code: 2, stderr: /is no line of the audit/ })
  const three = await run(t, ['explain', '--config', file, '--audit', `${line}\n${line}\n\n${line}\n`])
  t.match(three, { code: 2, stderr: /--audit takes one line, and got 3: tail -1 FILE/ })
  t.match(await run(t, ['explain', '--config', file, '--audit', line.slice(1)]), { code: 2, stderr: /a JSON object/ })
})

void test('a line of the audit log says at which upstream the thread is; one from before there were several is of upstream', async (t) => {
  const { explain } = scene(t)
  const legal = auditLine(audited({ ...READING, scope: 'legal' }))
  t.match((await explain('--audit', JSON.stringify(legal))).stdout, /^facts +the thread t-1 at legal was own$/m)
  t.match(JSON.parse((await explain('--audit', JSON.stringify(legal), '--json')).stdout), { same: true, scope: 'legal' })
  const old = { ...legal, scope: undefined }
  const replayed = await explain('--audit', JSON.stringify(old))
  t.match(replayed, { code: 0, stdout: /^facts +the thread t-1 was own$/m })
  t.match(await explain('--audit', JSON.stringify({ ...legal, scope: 'Legal!' })), {
    code: 2,
    stderr: /--audit names no upstream/,
  })
})

void test('a request goes to the upstream under whose public path it comes, with that one’s settings', async (t) => {
  const changes: Changes = {
    'upstream.headers': { 'x-first': SECRET },
    'upstreams.legal': {
      url: 'http://127.0.0.1:2',
      basePath: '/runtime',
      publicPath: '/legal',
      transport: 'single-route',
      unknownThread: 'deny',
      forwardAuthorization: false,
    },
    'agents.research': { url: 'http://127.0.0.1:3', path: '/awp/', headers: { 'x-agent': SECRET } },
  }
  const body = JSON.stringify({
    threadId: 't-1',
    runId: 'r-1',
    messages: [],
    tools: [],
    context: [],
    state: {},
    forwardedProps: {},
  })
  const { explain } = scene(t, changes, { claims: '{"iss":"corp","sub":"alice"}', body })
  const asked = (method: string, target: string, ...more: readonly string[]) =>
    explain('--method', method, '--target', target, '--claims', 'claims', ...more)
  const run = await asked('POST', '/agents/research', '--body', 'body')
  t.equal(run.code, 0)
  for (const line of [
    /^target +\/agents\/research\n +upstream: agents\.research$/m,
    /^route +agent\/run \(POST\), agent research, thread t-1$/m,
    /^upstream +POST \/awp\/$/m,
    /^ +authorization: \*\*\*$/m,
    /^ +x-agent: \*\*\*$/m,
    /"threadId":"t-1"/,
  ])
    t.match(run.stdout, line)
  t.notMatch(run.stdout, /x-first/)
  const data = JSON.parse((await asked('POST', '/agents/research', '--body', 'body', '--json')).stdout) as object
  t.match(data, { outcome: 'permitted', scope: 'research', upstream: { method: 'POST', target: '/awp/' } })
  const legal = await asked('GET', '/legal/threads/t-1/messages', '--owner', 'corp:alice')
  t.match(legal.stdout, /^ +upstream: upstreams\.legal$/m)
  t.match(legal.stdout, /^upstream +POST \/runtime$/m)
  t.match(legal.stdout, /unknownThread deny/)
  t.notMatch(legal.stdout, /authorization|x-first|x-agent/)
  const refused = await asked('POST', '/legal/agent/default/run', '--body', 'body')
  t.match(refused, { code: 3, stdout: /^outcome +refused: 403 .*\(thread-unknown\)/m })
  t.match(
    (await asked('POST', '/agents/other')).stdout,
    /outside the public paths \/api\/copilotkit, \/legal, \/agents\/research$/m,
  )
  t.match((await asked('GET', '/agents/research/info')).stdout, /^outcome +refused: 404/m)
})

void test('wrong usage is told, and nothing of a file is repeated', async (t) => {
  const { explain } = scene(
    t,
    {},
    { list: '["hunter2"]', text: 'hunter2 hunter3', twice: '{"sub":"a","sub":"b"}', claims: '{"sub":"a"}' },
  )
  const request = ['--method', 'GET', '--target', '/x']
  for (const [args, message] of [
    [['--target', '/x'], /--method M is missing/],
    [['--method', 'GET'], /--target PATH is missing/],
    [['--method', 'G ET', '--target', '/x'], /must be an HTTP method/],
    [[...request, '--claims', 'list'], /does not contain a JSON object \(body-not-object\)/],
    [[...request, '--claims', 'twice'], /does not contain a JSON object \(body-key-repeated\)/],
    [[...request, '--claims', 'nowhere.json'], /does not exist/],
    [
      [...request, '--claims', 'claims', '--issuer', 'crop'],
      /--issuer crop: the configuration has no issuer "crop": did you mean "corp"\?/,
    ],
    [[...request, '--claims', 'claims', '--token-file', 'text'], /either --token-file F or --claims F/],
    [[...request, '--issuer', 'corp'], /goes with --claims/],
    [[...request, '--token-file', 'text'], /contains no token/],
    [[...request, '--deleted'], /goes with --owner/],
    [[...request, '--granted', 'read'], /goes with --owner/],
    [[...request, '--owner', 'corp:bob', '--granted', 'all'], /--granted must be read or write/],
    [[...request, '--owner', 'corp:bob', '--granted', 'read', '--deleted'], /--granted does not go with --deleted/],
    [[...request, '--owner', 'alice'], /--owner must be a user id/],
    [[...request, '--history', 'much'], /none or some/],
    [['--audit', '{}', '--method', 'GET'], /--method does not go with --audit/],
    [['--request-id', 'r', '--method', 'GET'], /--method does not go with --request-id/],
    [['--request-id', 'r', '--from-store'], /--from-store does not go with --request-id/],
    [['--request-id', 'r', '--audit', '{}'], /--audit is @FILE or -/],
    [['--request-id', 'r'], /the audit is off: set audit.to, or name a file/],
    [[...request, '--from-store', '--owner', 'corp:bob'], /either --from-store or --owner USER/],
  ] as const) {
    const { code, stdout, stderr } = await explain(...args)
    t.same({ code, stdout }, { code: 2, stdout: '' }, args.join(' '))
    t.match(stderr, message)
    t.notMatch(stderr, /hunter/)
  }
})

void test('the method may be in small letters, and claims without iss are of the only issuer', async (t) => {
  const { explain } = scene(t, {}, { claims: '{"sub":"alice"}' })
  const asked = ['--target', MESSAGES, '--claims', 'claims', '--owner', 'corp:alice'] as const
  const small = await explain('--method', 'get', ...asked)
  t.match(small, { code: 0, stdout: /^caller +corp:alice;/m })
  t.same(await explain('--method', 'GET', ...asked), small)
  const issuer = { issuer: 'https://staff.example.com/', audiences: ['chat'], algorithms: ['RS256'] }
  const policy = 'version: 1\nrules:\n  - { name: all, allow: [signed-in], routes: [info] }\n'
  const several = scene(
    t,
    { 'authentication.issuers.staff': issuer, policy: 'policy.yaml' },
    { claims: '{"sub":"alice"}', 'policy.yaml': policy },
  )
  t.match(await several.explain('--method', 'GET', ...asked), {
    code: 2,
    stderr: /the claims have no "iss": name their issuer with --issuer KEY \(corp, staff\)/,
  })
})

void test('a refusal and a failure have different exit codes', async (t) => {
  const { file, explain } = scene(t, {}, { claims: '{"sub":"alice"}' })
  const asked = ['--method', 'GET', '--target', MESSAGES, '--claims', 'claims', '--owner', 'corp:bob'] as const
  t.equal((await explain(...asked)).code, 3)
  writeFileSync(file, 'version: 2\n')
  t.match(await explain(...asked), { code: 1, stdout: '', stderr: /^error: .*version: must be 1/ })
})

void test('sizes have units, rules are quoted, and the path of the policy comes once', async (t) => {
  const { explain } = scene(t, {}, { claims: '{"sub":"alice"}', body: '{"threadId":"t-1","runId":"r","messages":[]}' })
  const { stdout } = await explain('--method', 'POST', '--target', RUN, '--claims', 'claims', '--body', 'body')
  t.match(stdout, /^limits .* body 64MiB$/m)
  t.match(stdout, /^outcome +permitted by "chat" \(line \d+\)$/m)
  t.equal(stdout.split('default.yaml').length - 1, 1)
})

void test('the outcome is coloured on a terminal, and never in JSON', async (t) => {
  const { file, folder } = scene(t, {}, { claims: '{"sub":"alice"}' })
  const claims = join(folder, 'claims')
  const asked = ['explain', '--config', file, '--method', 'GET', '--target', MESSAGES, '--claims', claims, '--owner'] as const
  const atTerminal = { isTTY: true }
  t.match((await run(t, [...asked, 'corp:alice'], atTerminal)).stdout, /\u001b\[32mpermitted by .*\u001b\[39m/)
  t.match((await run(t, [...asked, 'corp:bob'], atTerminal)).stdout, /\u001b\[31mrefused: .*\u001b\[39m/)
  t.notMatch((await run(t, [...asked, 'corp:bob', '--json'], atTerminal)).stdout, /\u001b/)
  t.notMatch((await run(t, [...asked, 'corp:bob'])).stdout, /\u001b/)
})

void test('a request is found in the audit file and in what rotation made of it', async (t) => {
  const lineOf = (id: string): string => JSON.stringify({ ...auditLine(audited(READING)), requestId: id })
  const other = lineOf('another')
  const { explain, folder } = scene(
    t,
    { 'audit.to': 'file', 'audit.file': './audit.jsonl' },
    {
      'audit.jsonl': `${other}\n${lineOf('newest')}\n`,
      'audit.jsonl.1': `${lineOf('older')}\n${other}\n`,
      'elsewhere.jsonl': `${lineOf('elsewhere')}\n`,
    },
  )
  writeFileSync(join(folder, 'audit.jsonl.2.gz'), gzipSync(`${other}\n${lineOf('oldest')}\n`))
  for (const id of ['newest', 'older', 'oldest'])
    t.match(await explain('--request-id', id), { code: 0, stdout: /^same +yes$/m }, id)
  t.match(JSON.parse((await explain('--request-id', 'older', '--json')).stdout), { same: true })
  t.match(await explain('--request-id', 'elsewhere', '--audit', '@elsewhere.jsonl'), { code: 0, stdout: /^same +yes$/m })
  for (const id of ['elsewhere', 'new', '', '.*', '"'])
    t.match(await explain('--request-id', id), { code: 1, stdout: '', stderr: /no line with the request id/ }, JSON.stringify(id))
  writeFileSync(join(folder, 'audit.jsonl.3.gz'), 'no gzip')
  t.match(await explain('--request-id', 'never'), { code: 1, stderr: /audit\.jsonl\.3\.gz: incorrect header check/ })
})

void test('the owner and the grants of the thread are taken from the store, which stays as it is', async (t) => {
  const { explain, folder } = scene(t, {}, { claims: '{"iss":"corp","sub":"alice"}' })
  const store = await openSqliteStore(join(folder, 'ownership.db'))
  t.teardown(() => store.close())
  for (const [thread, owner] of [
    ['t-1', 'corp:alice'],
    ['t-2', 'corp:bob'],
    ['t-3', 'corp:bob'],
  ] as const)
    // oxfmt-ignore
    await store.assign(key(thread), owner, 1)
  await store.grant(key('t-3'), null, {
    kind: 'user',
    id: 'corp:alice',
    right: 'read',
    grantedBy: 'corp:bob',
    grantedAt: 1,
  })
  const before = await store.stats()
  const about = (thread: string, ...more: string[]) =>
    explain(
      '--method',
      'GET',
      '--target',
      `/api/copilotkit/threads/${thread}/messages`,
      '--claims',
      'claims',
      '--from-store',
      ...more,
    )
  t.match(await about('t-1'), { code: 0, stdout: /^facts +the thread t-1 belongs to corp:alice: own$/m })
  t.match(await about('t-2'), { code: 3, stdout: /^facts +the thread t-2 belongs to corp:bob: foreign$/m })
  t.match(await about('t-3'), {
    code: 0,
    stdout: /^facts +the thread t-3 belongs to corp:bob, shared with the caller for reading: shared$/m,
  })
  const unowned = await about('t-4')
  t.match(unowned, { code: 3, stdout: /^facts +the thread t-4 has no owner in the store$/m })
  t.notMatch(unowned.stdout, /assumed/)
  t.match(JSON.parse((await about('t-2', '--json')).stdout), { facts: { record: { owner: 'corp:bob' }, relation: 'foreign' } })
  t.same(await store.stats(), before)
})

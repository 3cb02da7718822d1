/** `threadwarden explain` of shared threads: for what it was granted, whether that is enough, and why it makes no difference. */
import { test } from 'tap'
import { auditLine } from '../../src/audit/line.ts'
import { edited } from '../../testing/support/policies.ts'
import { audited, READING } from '../../testing/support/audited.ts'
import { scene } from './explain-scene.ts'

const THREAD = '/api/copilotkit/threads/t-1'
const MESSAGES = `${THREAD}/messages`
const ALICE = '{"iss":"corp","sub":"alice","groups":["staff"]}'
const OFF = { 'policy.yaml': edited('sharing: true', 'sharing: false') }
const POLICY = { policy: './policy.yaml' }
const BOBS = ['--claims', 'claims', '--owner', 'corp:bob', '--granted'] as const

void test('what was granted is told with the thread, and the groups with the caller', async (t) => {
  const { explain } = scene(t, {}, { claims: ALICE })
  const read = ['--method', 'GET', '--target', MESSAGES, ...BOBS, 'read']
  const [plain, data] = await Promise.all([explain(...read), explain(...read, '--json')])
  t.equal(plain.code, 0)
  t.match(plain.stdout, /^caller +corp:alice; roles: none; permissions: none; groups: corp:staff; not an operator$/m)
  t.match(plain.stdout, /^facts +the thread t-1 belongs to corp:bob, shared with the caller for reading: shared$/m)
  t.match(plain.stdout, /^outcome +permitted by "threads" \(/m)
  t.match(JSON.parse(data.stdout), {
    principal: { groups: ['corp:staff'] },
    facts: { record: { owner: 'corp:bob', granted: 'read' }, relation: 'shared' },
  })
})

void test('a grant that is not enough', async (t) => {
  const { explain } = scene(t, {}, { claims: ALICE, rename: '{"name":"n"}', archive: '{"archived":true}' })
  const about = (method: string, target: string, granted: string, ...body: string[]) =>
    explain('--method', method, '--target', target, ...BOBS, granted, ...body)
  const [read, write, ...owners] = await Promise.all([
    about('PATCH', THREAD, 'read', '--body', 'rename'),
    about('PATCH', THREAD, 'write', '--body', 'rename'),
    about('PATCH', THREAD, 'write', '--body', 'archive'),
    about('DELETE', THREAD, 'write'),
    about('POST', `${THREAD}/archive`, 'write'),
  ])
  t.match(read, {
    code: 3,
    stdout: /belongs to corp:bob: foreign. It is shared with the caller for reading; this needs a grant for writing$/m,
  })
  t.match(read.stdout, /the grant is not enough: this needs a grant for writing$/m)
  t.match(write, { code: 0, stdout: /shared with the caller for writing: shared$/m })
  for (const owner of owners) {
    t.match(owner, { code: 3, stdout: /refused: 403 not-owner \(thread-foreign\)/ })
    t.match(owner.stdout, /the grant is not enough: only the owner may do this$/m)
  }
})

void test('a run on a thread that is shared for reading says what a run needs', async (t) => {
  const { explain } = scene(t, {}, { claims: ALICE, body: '{"threadId":"t-1","messages":[]}' })
  const target = '/api/copilotkit/agent/default/run'
  const { code, stdout } = await explain('--method', 'POST', '--target', target, '--body', 'body', ...BOBS, 'read')
  t.equal(code, 3)
  t.match(stdout, /corp:bob: foreign\. It is shared with the caller for reading; running an agent needs a grant for writing$/m)
  t.match(stdout, /the grant is not enough: running an agent needs a grant for writing$/m)
})

void test('a grant that does not count', async (t) => {
  const off = scene(t, POLICY, { claims: ALICE, ...OFF })
  const everybody = scene(t, { 'authentication.mode': 'off' })
  const [idle, anonymous] = await Promise.all([
    off.explain('--method', 'GET', '--target', MESSAGES, ...BOBS, 'write'),
    everybody.explain('--method', 'GET', '--target', MESSAGES, '--owner', 'corp:bob', '--granted', 'write'),
  ])
  t.match(idle, { code: 3, stdout: /the grant has no effect: the policy does not set sharing: true$/m })
  t.match(anonymous, { code: 3, stdout: /the grant has no effect: anonymous callers cannot have grants$/m })
})

void test('a run on a shared thread changes nothing of whose it is', async (t) => {
  const { explain } = scene(t, {}, { claims: ALICE, body: '{"threadId":"t-1","messages":[]}' })
  const target = '/api/copilotkit/agent/default/run'
  const { code, stdout } = await explain('--method', 'POST', '--target', target, '--body', 'body', ...BOBS, 'write')
  t.equal(code, 0)
  t.match(stdout, /the thread stays with its owner, corp:bob$/m)
  t.notMatch(stdout, /the thread becomes/)
})

for (const transport of ['multi-route', 'single-route']) {
  void test(`what owners grant the gateway answers itself: nothing is sent to a ${transport} upstream`, async (t) => {
    const policy = edited('allow: []\n    threads: [own]', 'allow: [signed-in]\n    threads: [own]')
    const files = {
      'policy.yaml': policy,
      claims: ALICE,
      body: '{"user":"corp:bob","right":"read"}',
      malformed: '{"user":"bob"}',
    }
    const { explain } = scene(t, { ...POLICY, 'upstream.transport': transport }, files)
    const target = '/api/copilotkit/threadwarden/threads/t-1/grants'
    const own = ['--target', target, '--claims', 'claims', '--owner', 'corp:alice']
    const [give, malformed, list, foreign] = await Promise.all([
      explain(...own, '--method', 'POST', '--body', 'body'),
      explain(...own, '--method', 'POST', '--body', 'malformed'),
      explain(...own, '--method', 'GET', '--json'),
      explain('--target', target, ...BOBS, 'write', '--method', 'GET'),
    ])
    t.match(give, { code: 0, stdout: /^outcome +permitted by "grants" \(/m })
    t.match(give.stdout, /nothing is sent: the gateway answers itself$/m)
    t.match(malformed, { code: 3, stdout: /^outcome +refused: /m }, 'the body is read as it is when the gateway serves')
    t.notMatch(give.stdout, /^upstream/m)
    t.match(JSON.parse(list.stdout), { outcome: 'permitted', upstream: null })
    t.match(foreign, { code: 3, stdout: /only the owner may do this$/m })
  })
}

void test('a line of the audit log about a shared thread is decided again as it was; without the switch it says why not', async (t) => {
  const line = JSON.stringify(
    auditLine(
      audited({
        ...READING,
        facts: { ...READING.facts, record: { owner: 'corp:bob', deleted: false, granted: 'read' } },
      }),
    ),
  )
  const [same, otherwise] = await Promise.all([scene(t), scene(t, POLICY, OFF)].map(({ explain }) => explain('--audit', line)))
  t.match(same, { code: 0, stdout: /^facts +the thread t-1 was shared$/m })
  t.match(otherwise, { code: 3, stdout: /the grant has no effect: the policy does not set sharing/ })
})

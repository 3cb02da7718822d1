/** Nobody gets an answer of the admin API without its credential, whatever they ask; it rotates without a restart. */
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { isAdmitted, makeAdminCredentials } from '../../src/http/admin/credentials.ts'
import { Sources } from '../../src/document/sources.ts'
import { OPERATOR, startAdmin } from '../../testing/support/admin.ts'
import { codeOf } from '../../testing/support/client.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { ask as askRaw, firstAnswer, sendRaw } from '../../testing/support/raw.ts'

const OLD = `old-${'o'.repeat(40)}`
const NEW = `new-${'n'.repeat(40)}`

void test('without the credential every path and method is 401, and nothing is looked at', async (t) => {
  const { url, store, audit } = await startAdmin(t)
  for (const target of [
    '/',
    '/revocations',
    '/nothing',
    '/revocations/token/j',
    '/%zz',
    '/revocations/user/%ff',
    '//',
    '/x?y',
    '*',
  ])
    for (const method of ['GET', 'POST', 'DELETE', 'OPTIONS', 'PATCH', 'PROPFIND', 'TRACE']) {
      const body = method === 'POST' ? { body: '{"tokenId":"j"}' } : {}
      for (const [name, lines, code, challenge] of [
        ['none', [], 'credential-missing', 'Bearer'],
        ['another', [`Authorization: Bearer ${OPERATOR}x`], 'credential-invalid', /^Bearer error="invalid_token"/],
      ] as const) {
        const answer = await askRaw(url, { method, target, lines, ...body })
        t.equal(answer.status, 401, `${method} ${target}, ${name}`)
        t.match(answer.headers.get('www-authenticate'), challenge)
        t.match(JSON.parse(answer.body), { error: /^Sign in/, message: /^Sign in/, code })
      }
    }
  t.same(await store.revocations(), [])
  const outcomes = new Set(audit().map(({ outcome, target }) => `${String(outcome)} ${String(target)}`))
  t.same(
    outcomes,
    new Set(['credential-missing undefined', 'credential-invalid undefined']),
    'each is a line, and names no target',
  )
  t.equal(audit().length, 9 * 7 * 2)
})

for (const line of [
  '',
  'Bearer',
  'Bearer ',
  OPERATOR,
  `bearer ${OPERATOR}`,
  `Basic ${OPERATOR}`,
  `Bearer  ${OPERATOR}`,
  `Bearer ${OPERATOR.slice(0, -1)}`,
  `Bearer ${OPERATOR.toUpperCase()}`,
  `Bearer ${OPERATOR}, Bearer ${OPERATOR}`,
  `Bearer ${OPERATOR}\n`,
]) {
  void test(`this is no credential: ${JSON.stringify(line)}`, (t) => {
    t.equal(isAdmitted([line], [OPERATOR]), false)
    t.end()
  })
}

void test('of several credentials any one is good, and of several headers none', (t) => {
  t.equal(isAdmitted([`Bearer ${OLD}`], [OLD, NEW]), true)
  t.equal(isAdmitted([`Bearer ${NEW}`], [OLD, NEW]), true)
  t.equal(isAdmitted([`Bearer ${NEW}`], []), false)
  t.equal(isAdmitted([], [OLD]), false)
  t.equal(isAdmitted([`Bearer ${OLD}`, `Bearer ${OLD}`], [OLD]), false)
  t.end()
})

void test('two Authorization lines on the wire are refused, also if the first is good', async (t) => {
  const { url } = await startAdmin(t)
  const good = `Authorization: Bearer ${OPERATOR}`
  t.equal((await askRaw(url, { target: '/revocations', lines: [good] })).status, 200)
  t.equal((await askRaw(url, { target: '/revocations', lines: [good, 'Authorization: Bearer x'] })).status, 401)
  t.equal((await askRaw(url, { target: '/revocations', lines: [good, good] })).status, 401)
})

void test('a page in a browser gets nothing, with the credential or without', async (t) => {
  const { ask, store, audit } = await startAdmin(t)
  for (const origin of ['https://app.example.com', 'http://127.0.0.1:9090', 'null', ''])
    for (const token of [OPERATOR, 'x']) {
      const answer = await ask('/revocations', { token, headers: { origin }, body: { tokenId: 'j' } })
      t.same([answer.status, codeOf(answer)], [403, 'not-allowed'], origin)
      t.equal(answer.headers.get('access-control-allow-origin'), null)
    }
  const headers = { origin: 'https://app.example.com', 'access-control-request-method': 'POST' }
  t.equal((await ask('/revocations', { method: 'OPTIONS', headers })).status, 403)
  t.same(await store.revocations(), [])
  t.ok(audit().every(({ outcome }) => outcome === 'not-allowed'))
})

void test('what is no HTTP gets an answer in the usual form', async (t) => {
  const { url } = await startAdmin(t)
  const garbage = firstAnswer(await sendRaw(url, 'GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n'))
  t.equal(garbage.status, 400)
  t.match(JSON.parse(garbage.body), { code: 'header-malformed' })
  const large = await askRaw(url, { target: '/', lines: [`X-Large: ${'x'.repeat(20_000)}`] })
  t.equal(large.status, 431)
  t.match(JSON.parse(large.body), { code: 'headers-too-large' })
})

void test('the credential stands in no line of the log', async (t) => {
  const { ask, lines, credentialFile } = await startAdmin(t)
  await ask('/revocations', { body: { tokenId: 'j' } })
  await ask('/revocations', { token: `${OPERATOR}x` })
  await ask('/nothing', { token: OLD })
  writeFileSync(credentialFile, `${OPERATOR} and more\n`)
  await ask('/revocations')
  t.ok(lines.length >= 4)
  t.notMatch(JSON.stringify(lines), new RegExp(`${OPERATOR}|${OLD}|and more`))
})

void test('the file rotates: old, old and new, new', async (t) => {
  const { ask, credentialFile } = await startAdmin(t)
  const who = async (): Promise<readonly string[]> => {
    const answers = await Promise.all(
      [OPERATOR, OLD, NEW].map(async (token) => [token, await ask('/revocations', { token })] as const),
    )
    return answers.filter(([, { status }]) => status === 200).map(([token]) => token)
  }
  t.same(await who(), [OPERATOR])
  writeFileSync(credentialFile, `${OLD}\r\n\n${NEW}`)
  t.same(await who(), [OLD, NEW])
  // As a mount replaces it: another file in its place.
  writeFileSync(`${credentialFile}.next`, `${NEW}\n`)
  renameSync(`${credentialFile}.next`, credentialFile)
  t.same(await who(), [NEW])
})

/** Credentials from a file, and what was said of it. */
function fileOf(t: Test, text: string) {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'admin')
  writeFileSync(file, text)
  const faults: string[] = []
  return {
    file,
    faults,
    make: () => makeAdminCredentials({ credentialFile: file }, new Sources(), (message) => faults.push(message)),
  }
}

for (const [name, text, message] of [
  ['nothing', ' \n\n', /is empty/],
  ['a short line', 'x'.repeat(31), /fewer than 32 characters: make one with openssl rand -hex 32/],
  ['a short line beside a good one', `${OLD}\nshort\n`, /fewer than 32 characters/],
  ['three lines', `${OLD}\n${NEW}\n${OPERATOR}\n`, /more than 2 lines/],
  ['a space within', `${OLD} ${NEW}`, /characters that a header cannot carry/],
  ['what is no ASCII', 'ü'.repeat(40), /characters that a header cannot carry/],
] as const) {
  void test(`${name} in the file fails a start, and changes nothing of what is in force`, (t) => {
    const bad = fileOf(t, text)
    t.throws(bad.make, { message })
    t.throws(bad.make, { message: new RegExp(bad.file) })

    const good = fileOf(t, OLD)
    const { credentials } = good.make()
    writeFileSync(good.file, text)
    t.same([credentials(), credentials()], [[OLD], [OLD]])
    t.match(good.faults, [message])
    t.equal(good.faults.length, 1, 'and is said once')
    writeFileSync(good.file, NEW)
    t.same(credentials(), [NEW])
    t.equal(good.faults.length, 1)
    t.end()
  })
}

void test('a file that is gone leaves the last one in force, is said once, and is taken when it is back', (t) => {
  const { file, faults, make } = fileOf(t, OLD)
  const { credentials } = make()
  rmSync(file)
  t.same([credentials(), credentials()], [[OLD], [OLD]])
  t.match(faults, [/cannot be read/])
  t.equal(faults.length, 1)
  writeFileSync(file, NEW)
  t.same(credentials(), [NEW])
  rmSync(file)
  credentials()
  t.equal(faults.length, 2)
  t.throws(make, { message: /cannot be read/ })
  t.end()
})

void test('a credential in the configuration is held to the same, and is one', (t) => {
  const make = (credential: string) => makeAdminCredentials({ credential }, new Sources(), () => t.fail('nothing can change'))
  t.same(make(OLD).credentials(), [OLD])
  t.throws(() => make('x'.repeat(31)), { message: /admin\.credential has a credential of fewer than 32/ })
  t.throws(() => make(''), { message: /admin\.credential is empty/ })
  t.throws(() => make(`${OLD}\n${NEW}`), { message: /admin\.credential has more than one line/ })
  t.throws(() => makeAdminCredentials({}, new Sources(), () => {}), { message: /either credential or credentialFile/ })
  t.throws(() => makeAdminCredentials({ credential: OLD, credentialFile: '/x' }, new Sources(), () => {}), { message: /either/ })
  t.end()
})

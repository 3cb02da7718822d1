/**
 * An issuer that does not say what an opaque token is worth. That is never yes, nor is it no, because the token may be good:
 * 503, and the next request asks again. Opaque tokens are easily made up: no more than 64 questions about unknown ones are
 * under way at once. The
 * gateway's own secret goes to the configured address and nowhere else, neither after a redirect nor into a log.
 *
 * RFC 7662 §2.2-2.3 and §4; RFC 8725 §3.10.
 */
import { test } from 'tap'
import { guarded, PASSED, REFUSED } from '../../testing/support/guarded.ts'
import { active, SECRET, startOpaque } from '../../testing/support/issuer-of-opaque-tokens.ts'
import type { Answer } from '../../testing/support/key-server.ts'
import { deferred, until } from '../../testing/support/until.ts'

const UNAVAILABLE = 'keys-unavailable: keys-unavailable'
const GOOD = active()

const FAILURES: Readonly<Record<string, Answer>> = {
  'hangs up': { hangUp: true },
  'answers 500': { status: 500, body: GOOD },
  'answers 503': { status: 503, body: GOOD },
  'answers 404': { status: 404, body: GOOD },
  'does not know the gateway': { status: 401, headers: { 'www-authenticate': 'Basic' }, body: GOOD },
  'has had enough': { status: 429, headers: { 'retry-after': '0' }, body: GOOD },
  'answers 201': { status: 201, body: GOOD },
  'answers 203': { status: 203, body: GOOD },
  'answers 204': { status: 204 },
  ...Object.fromEntries(
    [301, 302, 303, 307, 308].map((status) => [`redirects by ${status}`, { status, headers: { location: '/elsewhere' } }]),
  ),
  'sends too much': { body: { ...GOOD, more: 'x'.repeat(600 * 1024) } },
  'sends garbage': { body: '<html>' },
  'sends nothing': { body: '' },
  'sends half of it': { body: JSON.stringify(GOOD).slice(0, -1) },
  'says true': { body: 'true' },
  'says null': { body: 'null' },
  'says "active"': { body: '"active"' },
  'sends a JWT': { headers: { 'content-type': 'application/token-introspection+jwt' }, body: 'eyJhbGciOiJub25lIn0.e30.' },
}

for (const [name, answer] of Object.entries(FAILURES)) {
  void test(`an issuer that ${name} has not said yes`, async (t) => {
    const { server, questions, told, says, failures } = await startOpaque(t)
    server.answers.set('/elsewhere', { body: GOOD })
    server.answers.set('/introspect', answer)
    t.equal(await told('opaque'), UNAVAILABLE)
    t.equal(await told('opaque'), UNAVAILABLE)
    t.equal(questions().length, 2)
    t.equal(failures.length, 2)
    t.same(
      server.fetched.filter((path) => path !== '/introspect'),
      [],
    )
    says()
    t.equal(await told('opaque'), 'corp:alice', 'it recovers at once')
  })
}

void test('an answer that is a list says nothing of a token', async (t) => {
  const { server, told } = await startOpaque(t)
  server.answers.set('/introspect', { body: [GOOD] })
  t.match(await told('opaque'), /^(?:keys-unavailable|credential-invalid)/)
})

void test('an issuer that takes longer than five seconds has not said yes', async (t) => {
  const { server, told, failures } = await startOpaque(t)
  const held = deferred<Answer>()
  server.answers.set('/introspect', () => held.promise)
  t.equal(await told('opaque'), UNAVAILABLE)
  t.match(failures, [/abort|timeout/i])
  held.resolve({ body: GOOD })
})

void test('a failure does not take away what was said before', async (t) => {
  const { server, told } = await startOpaque(t)
  t.equal(await told('opaque'), 'corp:alice')
  server.answers.set('/introspect', { status: 500 })
  t.same([await told('opaque'), await told('other')], ['corp:alice', UNAVAILABLE])
})

void test('no more than 64 questions are under way at once, and room is made by every answer', async (t) => {
  const { server, questions, told } = await startOpaque(t)
  const held = deferred<Answer>()
  server.answers.set('/introspect', () => held.promise)
  const waiting = Promise.all(Array.from({ length: 64 }, (_, at) => told(`opaque-${at}`)))
  await until(() => questions().length === 64)
  const more = await Promise.all(Array.from({ length: 1000 }, (_, at) => told(`more-${at}`)))
  t.same(new Set(more), new Set([UNAVAILABLE]))
  t.equal(questions().length, 64)
  const same = told('opaque-0')
  held.resolve({ body: GOOD })
  t.same(new Set([...(await waiting), await same]), new Set(['corp:alice']))
  server.answers.set('/introspect', { body: GOOD })
  t.equal(await told('more-0'), 'corp:alice')
  t.equal(questions().length, 65)
})

void test('who was good before is asked about all the same, however many tokens are made up', async (t) => {
  const { server, questions, told } = await startOpaque(t, {}, { cacheFor: '0s' })
  t.equal(await told('good'), 'corp:alice')
  const held = deferred<Answer>()
  server.answers.set('/introspect', () => held.promise)
  const waiting = Promise.all(Array.from({ length: 64 }, (_, at) => told(`made-up-${at}`)))
  await until(() => questions().length === 65)
  server.answers.set('/introspect', { body: GOOD })
  t.equal(await told('new'), UNAVAILABLE)
  t.equal(await told('good'), 'corp:alice')
  server.answers.set('/introspect', { body: { ...GOOD, active: false } })
  t.equal(await told('good'), 'credential-invalid: token-inactive')
  t.equal(await told('good'), UNAVAILABLE, 'and no longer, once it is not')
  held.resolve({ body: { ...GOOD, active: false } })
  await waiting
})

void test('questions that failed make room, too', async (t) => {
  const { server, told, says } = await startOpaque(t)
  server.answers.set('/introspect', { hangUp: true })
  for (let at = 0; at < 130; at += 10) {
    const answers = await Promise.all(Array.from({ length: 10 }, (_, more) => told(`opaque-${at + more}`)))
    t.same(new Set(answers), new Set([UNAVAILABLE]))
  }
  says()
  t.equal(await told('opaque'), 'corp:alice')
})

void test('over the real gateway: only what the issuer calls active passes, and no log line holds a secret', async (t) => {
  const { server, config } = await startOpaque(t)
  const { fate, fateOf, upstream, gateway } = await guarded(t, { corp: config }, { authentication: { tokenCache: 0 } })
  const opaque = 'b3BhcXVl-of-alice'
  t.equal(await fate(opaque), PASSED)
  server.answers.set('/introspect', { body: { ...GOOD, active: false } })
  t.equal(await fate(opaque), REFUSED)
  const unavailable = '503 keys-unavailable, nothing upstream'
  for (const answer of [
    { status: 500, body: SECRET },
    { body: `${opaque} ${SECRET}` },
    { hangUp: true },
    { status: 302, headers: { location: `/${opaque}` } },
  ]) {
    // oxfmt-ignore
    server.answers.set('/introspect', answer)
    t.equal(await fate(opaque), unavailable)
  }
  t.equal(await fateOf('Authorization: Basic Z2F0ZXdheTpodXNo'), REFUSED)
  t.equal(upstream.requests.length, 1)
  const log = JSON.stringify(gateway.lines)
  for (const secret of [opaque, SECRET, 'hush', Buffer.from('gateway:hush+hush').toString('base64')])
    t.notOk(log.includes(secret), secret)
  t.match(gateway.lines.map(({ msg }) => msg).join('\n'), 'could not be fetched')
})

/** What is secret is in no finding, even where an upstream says it back; nor does anything there steer a terminal. */
import { test } from 'tap'
import { makeRedactor, report } from '../../src/tools/doctor/finding.ts'
import { INFO, json, startUpstream } from '../../testing/support/upstream.ts'
import { bothAt, examined } from './examination.ts'

const SECRET = 'correct-horse-battery'

void test('a token and the headers of the configuration are nowhere, whatever is answered', async (t) => {
  const upstream = await startUpstream((request, response) => {
    if (/\/[0-9a-f-]{36}$/.test(request.target)) return json({}, 404)(request, response)
    const said = `${request.headers.get('x-api-key')?.[0] ?? ''} ${request.headers.get('authorization')?.[0] ?? ''}`
    // An upstream that says back what it was sent, wherever a finding could take it from.
    return json({ ...INFO, version: said, agents: { [said]: {} }, code: said, pending: { [said]: said } }, 405, {
      allow: said.trim(),
      'access-control-allow-origin': said.trim(),
    })(request, response)
  })
  t.teardown(() => upstream.close())
  upstream.answerQuestions(json(INFO))
  const port = Number(new URL(upstream.url).port)
  const token = 'a.token.of-somebody'
  const changes = {
    'upstream.url': upstream.url,
    'upstream.headers': { 'X-Api-Key': SECRET },
    ...bothAt(port),
    'cors.origins': ['https://app.example.com'],
    'ownership.unknownThread': 'verify',
  }
  const { all } = await examined(t, changes, { wishes: { token, run: { agentId: 'default', message: 'hello' } } })
  const said = JSON.stringify(all) + report(all)
  t.notOk(said.includes(SECRET))
  t.notOk(said.includes(token))
  t.ok([...upstream.requests, ...upstream.questions].some(({ headers }) => headers.get('x-api-key')?.[0] === SECRET))
})

void test('a secret inside another one, and bytes that steer a terminal, are taken out', (t) => {
  const clean = makeRedactor(['secret', 'secret-and-more', 'x', 'a+b(c)d'])
  const message = 'a secret-and-more \u001b[31mred\u202e SECRET x \n'
  t.same(clean({ check: 'a.b', level: 'problem', message, remedy: 'no secret, a+b(c)d' }), {
    check: 'a.b',
    level: 'problem',
    message: 'a (hidden)  [31mred  (hidden) x  ',
    remedy: 'no (hidden), (hidden)',
  })
  t.match(clean({ check: 'a.b', level: 'ok', message: 'y'.repeat(5000) }).message, /^y{600}…$/)
  t.end()
})

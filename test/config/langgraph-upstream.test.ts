/** What a configuration says of a LangGraph server that would be read by others than the server. */
import { test } from 'tap'
import { accepted } from '../../testing/support/configuration.ts'

const GRAPHS = { kind: 'langgraph', url: 'http://127.0.0.1:2024' }
const ENVIRONMENT = { environment: { TOKEN: 'a-secret' } }
const ASSERTION = { keyFiles: ['key.pem'], issuer: 'https://chat.example.com', audience: 'agents' }

const warningsOf = (headers: object, more: object = {}) =>
  accepted({ 'upstreams.graphs': { ...GRAPHS, headers }, ...more }, ENVIRONMENT).warnings

void test('a header that the server keeps with threads draws a warning, and one that it keeps to itself does not', (t) => {
  t.match(warningsOf({ 'X-Service-Token': '${env:TOKEN}' }), [
    { path: 'upstreams.graphs.headers.X-Service-Token', message: /^can be read by callers/, hint: /authorization/ },
  ])
  for (const name of ['authorization', 'x-api-key', 'X-Service-Key']) t.same(warningsOf({ [name]: '${env:TOKEN}' }), [], name)
  const runtime = { 'upstream.headers': { 'x-service-token': '${env:TOKEN}' } }
  t.same(accepted(runtime, ENVIRONMENT).warnings, [], 'a runtime does not show it')
  t.end()
})

void test('so does an assertion, unless it takes the place of the token', (t) => {
  t.match(warningsOf({}, { 'identity.assertion': ASSERTION }), [
    { path: 'identity.assertion', message: /^can be read by every reader of a thread/ },
  ])
  const named = { 'upstream.transport': 'multi-route', 'identity.assertion': { ...ASSERTION, replaceAuthorization: true } }
  t.same(warningsOf({}, named), [], 'and the server needs no transport for that')
  t.end()
})

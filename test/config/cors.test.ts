/** Cross-origin callers are named exactly: a pattern or a wildcard with credentials would let any page speak for its visitor. */
import { test } from 'tap'
import { accepted, faultsIn } from '../../testing/support/configuration.ts'

void test('exact origins are accepted, with credentials too', (t) => {
  const cors = { origins: ['https://app.example.com', 'http://localhost:3000'], credentials: true }
  t.same(accepted({ cors }).config.cors, cors)
  t.same(accepted({ cors: { origins: ['*'] } }).config.cors, { origins: ['*'], credentials: false })
  t.end()
})

void test('"*" with credentials is refused', (t) => {
  t.match(faultsIn({ cors: { origins: ['*'], credentials: true } }), [
    { path: 'cors', message: 'credentials cannot go with "*"', hint: 'name the origins' },
  ])
  t.end()
})

void test('"*" beside an origin is refused', (t) => {
  t.match(faultsIn({ 'cors.origins': ['https://a.example', '*'] }), [
    { path: 'cors.origins', message: '"*" must be the only origin' },
  ])
  t.end()
})

for (const text of [
  'https://app.example.com/',
  'https://app.example.com/path',
  'HTTPS://APP.example.com',
  'https://*.example.com',
  'https://app.example.com:443',
  'app.example.com',
  'null',
  'file:///x',
  'https://user@app.example.com',
  '',
]) {
  void test(`"${text}" is no origin that a browser sends`, (t) => {
    const fault = { path: 'cors.origins.0', message: 'is not an origin', hint: /https:\/\/app\.example\.com/ }
    t.match(faultsIn({ 'cors.origins': [text] }), [fault])
    t.end()
  })
}

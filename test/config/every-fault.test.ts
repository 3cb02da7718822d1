/** A broken file is mended in one go: every fault is reported at once, with its file, line, path and what to do. */
import { test } from 'tap'
import { faultLine } from '../../src/document/fault.ts'
import { faultPaths, faultsIn } from '../../testing/support/configuration.ts'

const BROKEN = `version: 1
listen:
  prot: 8080
upstream:
  url: http://127.0.0.1:4000/path
  basePath: /api/
  timeouts: { connect: 2 seconds }
authentication:
  issuers:
    corp:
      issuer: http://login.example.com/
      audiences: []
      algorithms: [RS257]
ownership:
  unknownThread: maybe
limits: { body: 1MB }
log: { level: loud }
`

void test('every fault is reported at once, each at its line', (t) => {
  const faults = faultsIn(BROKEN)
  t.same(
    faults.map(({ path, line }) => [path, line]),
    [
      ['listen.prot', 3],
      ['upstream.url', 5],
      ['upstream.basePath', 6],
      ['upstream.timeouts.connect', 7],
      ['authentication.issuers.corp.audiences', 12],
      ['authentication.issuers.corp.algorithms.0', 13],
      ['ownership.unknownThread', 15],
      ['limits.body', 16],
      ['log.level', 17],
    ],
  )
  t.ok(faults.every((fault) => fault.file.endsWith('/threadwarden.yaml')))
  t.end()
})

void test('a fault is one line: file, line, path, what is wrong, what to do', (t) => {
  const fault = { file: 'a.yaml', line: 3, path: 'listen.prot', message: 'is not a known key', hint: 'did you mean "port"?' }
  t.equal(faultLine(fault), 'a.yaml:3: listen.prot: is not a known key (did you mean "port"?)')
  t.equal(faultLine({ file: 'a.yaml', path: '', message: 'cannot be read' }), 'a.yaml: cannot be read')
  t.end()
})

void test('a reference that leads nowhere does not hide the other faults', (t) => {
  t.same(faultPaths({ 'upstream.headers': { 'x-token': '${env:NOPE}' }, 'log.level': 'loud' }), [
    'upstream.headers.x-token',
    'log.level',
  ])
  t.end()
})

void test('a fault of the schema does not hide those of the headers', (t) => {
  const paths = faultPaths({ 'log.level': 'loud', forwardHeaders: ['cookie'], 'upstream.headers': { a: '1', A: '2' } })
  t.same([...paths].sort(), ['forwardHeaders.0', 'log.level', 'upstream.headers.A'])
  t.end()
})

void test('a fault of one issuer does not hide what is wrong between two', (t) => {
  const one = { issuer: 'https://a.example', audiences: ['a'], algorithms: ['RS256'] }
  const paths = faultPaths({ 'authentication.issuers': { a: one, b: { ...one, algorithms: [] } } })
  t.same([...paths].sort(), ['authentication.issuers', 'authentication.issuers.b.algorithms'])
  t.end()
})

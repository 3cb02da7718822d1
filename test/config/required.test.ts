/**
 * What an operator must decide is asked for and never guessed: a gateway that fills in an upstream, an issuer or the fate
 * of unknown threads would guard something else than what it was put in front of.
 */
import { test } from 'tap'
import { accepted, faultPaths, faultsIn } from '../../testing/support/configuration.ts'

for (const path of ['version', 'upstream.url', 'upstream.basePath', 'ownership.unknownThread']) {
  void test(`${path} is required`, (t) => {
    t.same(faultPaths({ [path]: undefined }), [path])
    t.end()
  })
}

for (const path of ['upstream', 'ownership']) {
  void test(`the ${path} section is required`, (t) => {
    t.match(faultsIn({ [path]: undefined }), [{ path, message: 'is required' }])
    t.end()
  })
}

void test('issuers are required unless the mode is off', (t) => {
  const issuers = { path: 'authentication.issuers', message: 'is required unless the mode is off' }
  t.match(faultsIn({ authentication: undefined }), [issuers])
  t.match(faultsIn({ 'authentication.issuers': {} }), [issuers])
  t.match(faultsIn({ authentication: { mode: 'optional' } }), [issuers])
  t.equal(accepted({ authentication: { mode: 'off' } }).config.authentication.mode, 'off')
  t.end()
})

void test('the version is 1 and nothing else', (t) => {
  for (const version of [0, 2, '1', true, null]) t.match(faultsIn({ version }), [{ path: 'version', message: 'must be 1' }])
  t.end()
})

void test('a file without a map in it is refused', (t) => {
  for (const text of ['', '# nothing\n', 'hello', '[1]', 'null']) t.same(faultPaths(text), [''])
  t.end()
})

/** Suggestions: a name that was probably meant, and none that only has a few letters in common. */
import { test } from 'tap'
import { nearest, suggestion } from '../../src/document/nearest.ts'

for (const [word, names, near] of [
  ['crop', ['corp', 'staff'], 'corp'],
  ['valdate', ['serve', 'validate'], 'validate'],
  ['RS255', ['RS256', 'ES256'], 'RS256'],
  ['eddsa', ['RS256', 'EdDSA'], 'EdDSA'],
  ['nope', ['corp'], undefined],
  ['lxl', ['level'], undefined],
  ['a', ['b'], undefined],
  ['', ['b'], undefined],
  ['word', [], undefined],
] as const) {
  void test(`${word} of ${names.join(', ')} is ${near ?? 'no misspelling'}`, (t) => {
    t.equal(nearest(word, names), near)
    t.end()
  })
}

void test('without a near name, all names are listed', (t) => {
  t.equal(suggestion('prot', ['host', 'port']), 'did you mean "port"?')
  t.equal(suggestion('nope', ['host', 'port']), 'known here: host, port')
  t.equal(suggestion('nope', ['host', 'port'], 'it has'), 'it has: host, port')
  t.end()
})

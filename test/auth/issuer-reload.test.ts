/** Which keys of an issuer a changed configuration may go on with: those that it would fetch from the same place in the same way. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { makeIssuers, type Issuer } from '../../src/auth/issuer.ts'
import { configSchema } from '../../src/config/schema.ts'
import { Sources } from '../../src/document/sources.ts'
import { AUTHORITY, SERVER } from '../../testing/support/certificates.ts'
import { ISSUER } from '../../testing/support/gates.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import type { Part } from '../../testing/support/signing.ts'

void test('another configuration of an issuer shares the known keys if only their times or the checks of claims differ', (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = (name: string, content: string): string => {
    writeFileSync(join(folder, name), content)
    return join(folder, name)
  }
  const introspection = { url: 'https://login.example.com/ask', clientId: 'gate', clientSecret: 'secret' }
  const ca = file('ca.pem', AUTHORITY)
  const usual = {
    ...{ issuer: ISSUER, audiences: ['chat'], algorithms: ['RS256'], jwksUri: 'https://login.example.com/keys' },
    ...{ ca, bearerTokenFile: file('token', 'a'), introspection },
  }
  const made = (issuer: Part, known: readonly Issuer[] = [], { key = 'corp', ...authentication }: Part = {}) => {
    const { authentication: parsed } = configSchema.parse({
      version: 1,
      upstream: { url: 'http://127.0.0.1:1', basePath: '/' },
      authentication: { ...authentication, issuers: { [key as string]: issuer } },
      ownership: { unknownThread: 'deny' },
    })
    return makeIssuers(parsed, { known, sources: new Sources(), clock: () => 0, onFetchFailure: () => {} })
  }
  const before = made(usual)
  const shares = (changes: Part, authentication: Part = {}): boolean => {
    const [next] = made({ ...usual, ...changes }, before, authentication)
    return next?.keys.known === before[0]?.keys.known
  }
  t.equal(made(usual, before)[0], before[0], 'nothing differs')
  for (const changes of [
    { keyCache: '1m' },
    { staleIfError: '48h' },
    { audiences: ['other'] },
    { audienceClaim: '/azp' },
    { requiredClaims: { '/sub': null } },
    { maxTokenAge: '1h' },
    { claims: { role: '/roles' } },
    { introspection: { ...introspection, clientSecret: 'other' } },
  ]) {
    t.ok(shares(changes), JSON.stringify(changes))
    t.not(made({ ...usual, ...changes }, before)[0], before[0], 'but the issuer is another')
  }
  for (const changes of [
    { issuer: 'https://other.example.com/' },
    { jwksUri: 'https://login.example.com/other' },
    { jwksUri: undefined },
    { algorithms: ['RS384'] },
    { algorithms: ['RS256', 'RS384'] },
    { tokenTypes: ['at+jwt'] },
    { clockTolerance: '1s' },
    { insecureHttp: true },
    { ca: undefined },
    { ca: file('other.pem', SERVER.cert) },
    { bearerTokenFile: undefined },
    { bearerTokenFile: file('other', 'a') },
    { introspection: undefined },
    { introspection: { ...introspection, clientId: 'other' } },
  ]) {
    t.notOk(shares(changes), JSON.stringify(changes))
  }
  t.notOk(shares({}, { key: 'other' }), 'the users of another entry are others')
  t.notOk(shares({}, { clockTolerance: '1s' }), 'of all issuers')
  file('ca.pem', SERVER.cert)
  t.notOk(shares({}), 'another authority under the same path')
  t.end()
})

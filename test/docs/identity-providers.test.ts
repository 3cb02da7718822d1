/**
 * docs/how-to/connect/identity-providers: every example, put into a whole configuration, is accepted as `validate` accepts it, with
 * the warnings that its comments announce and no other. Those of oidc-provider are run with a real one.
 */
import { generateKeyPairSync } from 'node:crypto'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { test } from 'tap'
import { parse } from 'yaml'
import { listen, stop } from '../../examples/http.ts'
import { memoryStore } from '../../examples/issuer-store.ts'
import { startIssuer } from '../../examples/issuer.ts'
import { makeAuthenticate } from '../../src/auth/authenticate.ts'
import { makeIssuers } from '../../src/auth/issuer.ts'
import { Sources } from '../../src/document/sources.ts'
import type { Config } from '../../src/config/schema.ts'
import { faultLine } from '../../src/document/fault.ts'
import { prepare, type Prepared } from '../../src/snapshot/load.ts'
import { AUTHORITY } from '../../testing/support/certificates.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { heard } from '../../testing/support/gates.ts'
import { makeSigner } from '../../testing/support/tokens.ts'
import { runBlocks } from './commands.ts'
import { blocks, links, page, prose, ROOT } from './markdown.ts'

const INDEX = page('docs/how-to/connect/identity-providers.md')
const FOLDER = 'docs/how-to/connect/identity-providers'

/** The pages of the providers, with how many examples each has. */
const PROVIDERS: Readonly<Record<string, number>> = {
  'oidc-provider': 2,
  keycloak: 3,
  auth0: 1,
  'entra-id': 2,
  cognito: 1,
  google: 1,
  clerk: 1,
  supabase: 2,
  kubernetes: 1,
  others: 0,
  troubleshooting: 0,
}

const pageOf = (provider: string) => page(`${FOLDER}/${provider}.md`)

const examplesOf = (provider: string): readonly string[] => blocks(pageOf(provider), 'yaml')

/** Long enough for HS256, and no key. */
const SECRET = 'a secret of many words, with "quotes" & signs: 100 %'

/** What `prepare` makes of an example in a whole configuration; the files that it names are beside it. */
function prepared(example: string, secret = SECRET): { readonly value?: Prepared; readonly faults: readonly string[] } {
  const { folder, remove } = makeFolder()
  try {
    const file = join(folder, 'threadwarden.yaml')
    writeFileSync(file, withFiles(wholeOf(example), folder, secret))
    const outcome = prepare(file, {})
    return outcome.ok ? { value: outcome.value, faults: [] } : { faults: outcome.faults.map(faultLine) }
  } finally {
    remove()
  }
}

function wholeOf(example: string): string {
  const rest = {
    version: 1,
    upstream: { url: 'http://127.0.0.1:4000', basePath: '/api/copilotkit' },
    ownership: { unknownThread: 'claim' },
  }
  return JSON.stringify({ ...rest, ...(parse(example) as object) })
}

/** Moves the absolute paths of files into the folder and puts files with this text there, or a certificate. */
function withFiles(configuration: string, folder: string, text: string): string {
  return configuration.replaceAll(/(?<=[":])\/(?:var\/)?run\/secrets\/[^"}]+/g, (path) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), path.endsWith('.crt') ? AUTHORITY : `${text}\n`)
    return join(folder, path)
  })
}

/** The keys in whose lines an example announces a warning. */
function announced(example: string): readonly string[] {
  return Array.from(example.matchAll(/^ *(\w+):.*# draws a warning$/gm), ([, key = '']) => key)
}

for (const [provider, count] of Object.entries(PROVIDERS)) {
  void test(`${provider}: every example is valid`, (t) => {
    const examples = examplesOf(provider)
    t.equal(examples.length, count)
    for (const example of examples) {
      const { value, faults } = prepared(example)
      t.same(faults, [], example)
      t.same(
        value?.warnings.map(({ path }) => path.split('.').at(-1)),
        announced(example),
        `the warnings of\n${example}`,
      )
      t.equal(Object.keys(value?.config.authentication.issuers ?? {}).length, 1)
    }
    t.end()
  })
}

void test('every page of a provider is listed, and says whether its examples were run', (t) => {
  t.same(
    readdirSync(join(ROOT, FOLDER)).toSorted(),
    Object.keys(PROVIDERS)
      .map((provider) => `${provider}.md`)
      .toSorted(),
  )
  const linked = links(INDEX.name, INDEX.text).map(({ path }) => path)
  for (const [provider, count] of Object.entries(PROVIDERS)) {
    t.ok(linked.includes(pageOf(provider).name), provider)
    const said = provider === 'oidc-provider' ? /It is tested with/ : /It is an example that was not run against/
    if (count > 0) t.match(prose(pageOf(provider)), said, provider)
  }
  t.same(blocks(INDEX, 'yaml'), [])
  t.match(prose(INDEX), /\*\*oidc-provider is tested\*\*[^]*not run against the provider/)
  t.end()
})

void test('the command of the page decodes a token', async (t) => {
  const token = makeSigner().sign('alice')
  const { ran } = await runBlocks(t, 'docs/how-to/connect/identity-providers.md', { env: { TOKEN: token } })
  t.match(ran.at(-1)?.output, /sub: 'alice'/)
})

void test('an example that is wrong would be found', (t) => {
  const issuer = (lines: string): string =>
    `authentication: { issuers: { corp: { issuer: "https://a.example", audiences: [chat], ${lines} } } }`
  t.match(prepared(issuer('algorithm: [RS256]')).faults, [/algorithm.*is not a known key/])
  t.match(prepared(issuer('algorithms: [RS256], ca: /nowhere/ca.crt')).faults, [/ca: .*does not exist/])
  t.match(prepared(issuer('algorithms: [RS256], claims: { id: /email }')).value?.warnings, [{ path: /claims\.id$/ }])
  t.end()
})

/** Who the first issuer of a configuration takes a token for. */
function who({ authentication }: Config, token: string): Promise<string> {
  const authenticate = makeAuthenticate({
    mode: 'required',
    issuers: makeIssuers(authentication, { sources: new Sources(), clock: Date.now, onFetchFailure: () => {} }),
    tokenCache: authentication.tokenCache,
    clock: Date.now,
    onClientToken: () => {},
  })
  return heard(authenticate, token)
}

void test('oidc-provider: people who sign in at a real one are let in with the settings of the page', async (t) => {
  const issuer = await startIssuer({ audience: 'agent-chat' })
  t.teardown(() => issuer.close())
  const example = (examplesOf('oidc-provider')[0] ?? '').replace('https://id.example.com', issuer.issuer)
  const { config } = prepared(example).value ?? {}
  if (config === undefined) throw new Error('the example is not valid')
  const token = await issuer.signIn('olga')
  t.equal(await who(config, token), 'corp:olga')
  const slash = prepared(example.replace(issuer.issuer, `${issuer.issuer}/`)).value?.config ?? config
  t.match(await who(slash, token), 'issuer-unknown')
  const other = prepared(example.replace('agent-chat', 'another-api')).value?.config ?? config
  t.match(await who(other, token), 'audience-mismatch')
})

/** The part used here of what oidc-provider can do besides what examples/libraries.d.ts says. */
interface OpaqueProvider {
  readonly Client: { find(id: string): Promise<object> }
  readonly Grant: new (properties: object) => { save(): Promise<string> }
  readonly ResourceServer: new (identifier: string, data: object) => object
  readonly AccessToken: new (properties: object) => { resourceServer?: object; save(): Promise<string> }
  callback(): (request: IncomingMessage, response: ServerResponse) => void
}

/** A provider with introspection, and a client of that name and secret that may ask it. */
async function startOpaqueIssuer(secret: string) {
  const server = createServer()
  const { origin } = await listen(server, 0, '127.0.0.1')
  const fromExamples = createRequire(new URL('../../examples/issuer.ts', import.meta.url))
  const { default: Provider } = fromExamples('oidc-provider') as {
    default: new (issuer: string, settings: object) => OpaqueProvider
  }
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const code = {
    grant_types: ['authorization_code'],
    response_types: ['code'],
    redirect_uris: ['https://app.example.com/callback'],
  }
  const provider = new Provider(origin, {
    adapter: memoryStore(),
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256' }] },
    cookies: { keys: ['of this test'] },
    clients: [
      { client_id: 'app', token_endpoint_auth_method: 'none', ...code },
      { client_id: 'gateway', client_secret: secret, grant_types: [], response_types: [], redirect_uris: [] },
    ],
    clientBasedCORS: () => false,
    features: { devInteractions: { enabled: false }, introspection: { enabled: true, allowedPolicy: () => true } },
    findAccount: (_context: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
    ttl: { AccessToken: 3600, Grant: 3600 },
  })
  server.on('request', provider.callback())
  /** An opaque token as the token endpoint makes it; for a resource, or for none. */
  const tokenFor = async (accountId: string, audience?: string): Promise<string> => {
    const grantId = await new provider.Grant({ accountId, clientId: 'app' }).save()
    const extra = { role: 'operator' }
    const token = new provider.AccessToken({
      accountId,
      client: await provider.Client.find('app'),
      grantId,
      scope: 'chat',
      extra,
    })
    if (audience !== undefined) {
      token.resourceServer = new provider.ResourceServer(audience, { audience, scope: 'chat', accessTokenFormat: 'opaque' })
    }
    return token.save()
  }
  return { issuer: origin, tokenFor, close: () => stop(server) }
}

void test('oidc-provider: opaque tokens of a real one are asked about with the settings of the page', async (t) => {
  const issuer = await startOpaqueIssuer(SECRET)
  t.teardown(() => issuer.close())
  const example = (examplesOf('oidc-provider')[1] ?? '').replaceAll('https://id.example.com', issuer.issuer)
  const { config } = prepared(example).value ?? {}
  if (config === undefined) throw new Error('the example is not valid')
  t.equal(await who(config, await issuer.tokenFor('olga', 'agent-chat')), 'corp:olga')
  t.match(await who(config, await issuer.tokenFor('olga', 'another-api')), 'audience-mismatch')
  t.match(await who(config, await issuer.tokenFor('olga')), 'audience-mismatch')
  t.match(await who(config, 'made-up'), 'token-inactive')
  const unknown = prepared(example, 'another secret, as long as the first').value?.config ?? config
  t.match(await who(unknown, await issuer.tokenFor('olga', 'agent-chat')), 'keys-unavailable')
})

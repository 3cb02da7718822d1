/**
 * An OpenID provider for the demo and the tests: the real `oidc-provider`, three users, RS256 access tokens.
 * A caller who reaches it can sign in as any of them: keep it on loopback.
 */
/// <reference path="./libraries.d.ts" />
import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import Provider from 'oidc-provider'
import { ACCOUNTS } from './accounts.ts'
import { command, noWords, portOf, required, untilStopped, type Values } from './command.ts'
import { listen, stop } from './http.ts'
import { escape, INTERACTION_PATH, sendPage, serveInteraction } from './issuer-pages.ts'
import { memoryStore } from './issuer-store.ts'
import { CLIENT, CONSOLE_CLIENT, NEXT_CLIENT, signIn } from './sign-in.ts'

export { signIn }

const HOUR = 3600

/** The resource that access tokens are for; resource indicators have to be URIs, the audience in the token needn't. */
const RESOURCE = 'urn:threadwarden:demo:chat'

/** The part used here of the context that oidc-provider hands to its settings; `respond: false` says: answered already. */
interface Context {
  readonly res: ServerResponse
  readonly status: number
  respond: boolean
}

export interface IssuerOptions {
  /** 0, the default: any free port. */
  readonly port?: number
  readonly host?: string
  /** The `aud` of the access tokens. */
  readonly audience?: string
  /** What access tokens say about a person; by default all that `accounts.ts` does. */
  readonly claimsOf?: (user: string) => object
}

export interface Issuer {
  /** The `iss` of the tokens, and where discovery starts. */
  readonly issuer: string
  readonly audience: string
  /** Signs in `alice`, `bob` or `olga` and returns the access token. */
  signIn(user: string): Promise<string>
  /** Signs with a new key from now on; the old keys stay in the key set or are removed. */
  rotate(before: 'kept' | 'taken out'): void
  close(): Promise<void>
}

/** Starts an issuer with fresh keys. */
export async function startIssuer({
  port = 0,
  host = '127.0.0.1',
  audience = 'agent-chat',
  claimsOf = (user) => ({ ...ACCOUNTS.get(user) }),
}: IssuerOptions = {}): Promise<Issuer> {
  const server = createServer()
  const { origin } = await listen(server, port, host)
  const kept = { adapter: memoryStore(), cookies: { keys: [randomBytes(32).toString('base64url')] } }
  let keys = [makeKey()]
  // Only now: the issuer's name holds the port, which the system may have chosen.
  const make = () => {
    const provider = new Provider(origin, { ...configuration(audience, claimsOf), ...kept, jwks: { keys } })
    return { provider, standard: provider.callback() }
  }
  let made = make()
  server.on('request', (request, response) => {
    if (INTERACTION_PATH.test(request.url ?? '')) void serveInteraction(made.provider, request, response)
    else made.standard(request, response)
  })
  return {
    issuer: origin,
    audience,
    signIn: (user) => signIn(origin, user),
    rotate(before) {
      // A provider reads its keys once: another one takes its place. The first key that fits is the one it signs with.
      keys = [makeKey(), ...(before === 'kept' ? keys : [])]
      made = make()
    },
    close: () => stop(server),
  }
}

function makeKey(): object {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'sig', alg: 'RS256' }
}

function configuration(audience: string, claimsOf: (user: string) => object): object {
  return {
    clients: [CLIENT, CONSOLE_CLIENT, NEXT_CLIENT].map(({ id, redirectUri }) => ({
      client_id: id,
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      redirect_uris: [redirectUri],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
    })),
    // The console reads the role of an operator in the ID token.
    claims: { openid: ['sub', 'role'] },
    conformIdTokenClaims: false,
    responseTypes: ['code'],
    // The page redeems its codes from the browser, and is on whatever port is free.
    clientBasedCORS: (_context: unknown, origin: string) => URL.canParse(origin) && new URL(origin).hostname === '127.0.0.1',
    features: {
      devInteractions: { enabled: false },
      rpInitiatedLogout: { enabled: false },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => RESOURCE,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          scope: 'chat',
          audience,
          accessTokenFormat: 'jwt',
          accessTokenTTL: HOUR,
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    findAccount: (_context: unknown, subject: string) =>
      ACCOUNTS.has(subject)
        ? { accountId: subject, claims: () => ({ sub: subject, role: ACCOUNTS.get(subject)?.role }) }
        : undefined,
    extraTokenClaims: (_context: unknown, { accountId }: { accountId: string }) => claimsOf(accountId),
    renderError: (context: Context, out: { error: string; error_description?: string }) => {
      context.respond = false
      sendPage(context.res, context.status, `<p>${escape(out.error_description ?? out.error)}</p>`)
    },
    ttl: {
      AccessToken: HOUR,
      AuthorizationCode: 60,
      Grant: HOUR,
      IdToken: HOUR,
      Interaction: HOUR,
      RefreshToken: HOUR,
      Session: HOUR,
    },
  }
}

const USAGE = `An OpenID provider with three users: alice, bob, and olga, who is an operator.
It has no passwords: use it on your own machine only.

  node issuer.ts [--port N] [--host H] [--audience A]   starts it and prints its URL
  node issuer.ts token --issuer URL --user NAME         signs NAME in and prints the access token

  --port      the port (default: a free one)
  --host      the address to listen on (default: 127.0.0.1)
  --audience  the audience of the tokens (default: agent-chat)
`

async function main(words: readonly string[], values: Values): Promise<void> {
  if (words[0] === 'token' && words.length === 1) {
    process.stdout.write(`${await signIn(required(values, 'issuer'), required(values, 'user'))}\n`)
    return
  }
  noWords(words)
  const { host, audience } = values
  const issuer = await startIssuer({
    port: portOf(values),
    ...(host !== undefined && { host }),
    ...(audience !== undefined && { audience }),
  })
  process.stdout.write(`${issuer.issuer}\n`)
  await untilStopped(issuer)
}

if (import.meta.main) await command(USAGE, ['port', 'host', 'audience', 'issuer', 'user'], main)

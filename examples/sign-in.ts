/** Signing in the way a browser does: authorization code with PKCE, over HTTP, through the issuer's pages. */
import { createHash, randomBytes } from 'node:crypto'

/** The public client that people sign in with. The issuer accepts any port of a loopback address. */
export const CLIENT = { id: 'threadwarden-demo', redirectUri: 'http://127.0.0.1/callback', scope: 'openid chat' } as const

/** The public client of the gateway's console. */
export const CONSOLE_CLIENT = { id: 'threadwarden-console', redirectUri: 'http://127.0.0.1/console/callback' } as const

/** The public client of the Next.js example, whose callback is that of Auth.js. */
export const NEXT_CLIENT = { id: 'threadwarden-next', redirectUri: 'http://localhost/api/auth/callback/corp' } as const

/** A sign-in takes about eight steps; more means that the pages lead nowhere. */
const MOST_STEPS = 20

interface Cookie {
  readonly value: string
  readonly path: string
}

/**
 * Signs a person in and gets an access token.
 * @param issuer the issuer's URL, as in its discovery document
 * @param user who: `alice`, `bob` or `olga`
 * @returns the access token
 * @throws if the person is unknown or the issuer can't be reached
 */
export async function signIn(issuer: string, user: string): Promise<string> {
  const endpoints = await discover(issuer)
  const verifier = randomBytes(32).toString('base64url')
  const state = randomBytes(16).toString('base64url')
  const start = new URL(endpoints.authorization)
  start.search = new URLSearchParams({
    client_id: CLIENT.id,
    response_type: 'code',
    redirect_uri: CLIENT.redirectUri,
    scope: CLIENT.scope,
    state,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  }).toString()
  const { searchParams: answer } = await walk(start, user, (url) => url.startsWith(`${CLIENT.redirectUri}?`))
  const error = answer.get('error')
  if (error !== null) throw new Error(`the issuer refused the sign-in: ${answer.get('error_description') ?? error}`)
  if (answer.get('state') !== state) throw new Error('the answer belongs to another sign-in: its state differs')
  return redeem(endpoints.token, answer.get('code') ?? '', verifier)
}

async function discover(issuer: string): Promise<{ authorization: string; token: string }> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const response = await fetch(url)
  if (!response.ok) throw new Error(`no issuer at ${issuer}: ${response.status} for ${url}`)
  const found = (await response.json()) as { authorization_endpoint: string; token_endpoint: string }
  return { authorization: found.authorization_endpoint, token: found.token_endpoint }
}

/** Follows redirects and sends forms until the issuer redirects to the client; returns where to. */
export async function walk(start: URL, user: string, isClients: (url: string) => boolean): Promise<URL> {
  const cookies = new Map<string, Cookie>()
  let url = start
  let form: URLSearchParams | undefined
  for (let step = 0; step < MOST_STEPS; step += 1) {
    const response: Response = await fetch(url, {
      redirect: 'manual',
      headers: { cookie: cookieHeader(cookies, url) },
      ...(form !== undefined && { method: 'POST', body: form }),
    })
    keepCookies(cookies, response)
    const page = await response.text()
    const location = response.headers.get('location')
    if (location !== null && isClients(location)) return new URL(location)
    if (location !== null) {
      url = new URL(location, url)
      form = undefined
    } else if (response.ok) {
      form = press(page, user)
    } else {
      throw new Error(`the sign-in of ${user} failed: ${response.status} ${textOf(page)}`)
    }
  }
  throw new Error(`the sign-in of ${user} doesn't end`)
}

/** What pressing the fitting button of a page sends: a form posts to its own address. */
function press(page: string, user: string): URLSearchParams {
  if (page.includes('name="login"')) return new URLSearchParams({ login: user })
  if (page.includes('name="consent"')) return new URLSearchParams({ consent: 'yes' })
  throw new Error(`the issuer shows a page without a form: ${textOf(page)}`)
}

async function redeem(endpoint: string, code: string, verifier: string): Promise<string> {
  const response = await fetch(endpoint, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      client_id: CLIENT.id,
      redirect_uri: CLIENT.redirectUri,
      code,
      code_verifier: verifier,
    }),
  })
  const answer = (await response.json()) as { access_token?: string; error?: string; error_description?: string }
  if (answer.access_token !== undefined) return answer.access_token
  throw new Error(`no token: ${response.status} ${answer.error_description ?? answer.error ?? ''}`)
}

/** Keeps a response's cookies by name and path: those of one sign-in differ in the path alone. */
function keepCookies(cookies: Map<string, Cookie>, response: Response): void {
  for (const line of response.headers.getSetCookie()) {
    const [pair = '', ...attributes] = line.split(';').map((part) => part.trim())
    const name = pair.slice(0, pair.indexOf('='))
    const path = attributes.find((attribute) => /^path=/i.test(attribute))?.slice('path='.length) ?? '/'
    const value = pair.slice(name.length + 1)
    if (value === '') cookies.delete(`${name} ${path}`)
    else cookies.set(`${name} ${path}`, { value, path })
  }
}

function cookieHeader(cookies: ReadonlyMap<string, Cookie>, url: URL): string {
  return [...cookies]
    .filter(([, { path }]) => url.pathname === path || url.pathname.startsWith(path.endsWith('/') ? path : `${path}/`))
    .map(([key, { value }]) => `${key.slice(0, key.indexOf(' '))}=${value}`)
    .join('; ')
}

function textOf(page: string): string {
  return page
    .replace(/<title>.*?<\/title>|<[^>]*>/gs, ' ')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, 200)
}

/** Sign-in with Auth.js. The access token stays in the encrypted session cookie: pages get only the name of the user. */
import NextAuth, { type NextAuthResult } from 'next-auth'
import { getToken } from 'next-auth/jwt'

const result: NextAuthResult = NextAuth({
  session: { strategy: 'jwt', maxAge: 3600 },
  providers: [
    {
      id: 'corp',
      name: 'Corp',
      type: 'oidc',
      issuer: process.env.ISSUER_URL,
      clientId: 'threadwarden-next',
      client: { token_endpoint_auth_method: 'none' },
      checks: ['pkce', 'state'],
      authorization: { params: { scope: 'openid chat' } },
      profile: ({ sub }: { sub: string }) => ({ id: sub, name: sub }),
    },
  ],
  callbacks: {
    // `account` is there after a sign-in. The `session` callback must not return the token: its result reaches the browser.
    jwt: ({ token, account }) => (account?.access_token === undefined ? token : { ...token, accessToken: account.access_token }),
  },
})

export const { auth, handlers } = result
export const signIn: NextAuthResult['signIn'] = result.signIn
export const signOut: NextAuthResult['signOut'] = result.signOut

/** The access token of the session, or null. */
export async function accessTokenOf(request: Request): Promise<string | null> {
  const token = await getToken({
    req: request,
    secret: process.env.AUTH_SECRET,
    secureCookie: process.env.AUTH_URL?.startsWith('https:') ?? true,
  })
  return typeof token?.accessToken === 'string' ? token.accessToken : null
}

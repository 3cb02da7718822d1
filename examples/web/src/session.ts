/** Who is signed in: authorization code with PKCE (RFC 7636), by a library, at the issuer of the settings. */
import { UserManager, WebStorageStateStore, type User } from 'oidc-client-ts'
import type { Settings } from './settings.ts'

/** The session of this page. */
export interface Session {
  /** Called at each change; returns what ends that. */
  readonly onChange: (listener: () => void) => () => void
  readonly user: () => User | null
  /** Leaves the page for the issuer's. */
  readonly signIn: () => Promise<void>
  /** Signs in beside the page, which stays as it is. */
  readonly signInBeside: () => Promise<void>
  /** Fetches a new access token in place of the one there is. */
  readonly renew: () => Promise<void>
  /** Forgets the tokens. The issuer's own session goes on. */
  readonly signOut: () => Promise<void>
}

/** Where the issuer sends the browser back to. */
export const CALLBACK = '/callback'

/** Takes in the answer of the issuer, if this is one, and who was signed in before. */
export async function openSession({ issuer, clientId }: Settings): Promise<Session> {
  const manager = new UserManager({
    authority: issuer,
    client_id: clientId,
    redirect_uri: `${location.origin}${CALLBACK}`,
    scope: 'openid chat offline_access',
    // Without it the issuer gives no refresh token (OpenID Connect Core §11).
    prompt: 'consent',
    // Gone with the window: two windows are two people.
    userStore: new WebStorageStateStore({ store: sessionStorage }),
    automaticSilentRenew: true,
    // Nothing of the identity is needed but the token.
    loadUserInfo: false,
  })
  let user = await manager.getUser()
  const listeners = new Set<() => void>()
  const change = (next: User | null): void => {
    user = next
    for (const listener of listeners) listener()
  }
  manager.events.addUserLoaded(change)
  manager.events.addUserUnloaded(() => change(null))
  if (location.pathname === CALLBACK) {
    const answered = await manager.signinCallback()
    // In a window of its own it is closed by now, and the page that opened it has the user.
    if (answered !== undefined) {
      user = answered
      history.replaceState(null, '', typeof answered.state === 'string' ? answered.state : '/')
    }
  }
  return {
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    user: () => user,
    signIn: () => manager.signinRedirect({ state: `${location.pathname}${location.search}` }),
    async signInBeside() {
      await manager.signinPopup()
    },
    async renew() {
      await manager.signinSilent()
    },
    signOut: () => manager.removeUser(),
  }
}

/** What is seen: the way in, or who is here, their threads, the chat, and what went wrong. */
import { CopilotChat, CopilotKitProvider, useConfigureSuggestions } from '@copilotkit/react-core/v2'
import { useCallback, useEffect, useState, useSyncExternalStore } from 'react'
import type { Session } from './session.ts'
import type { Settings } from './settings.ts'
import { Threads } from './threads.tsx'

const AGENT = 'default'

interface Parts {
  readonly settings: Settings
  readonly session: Session
}

/** The whole page. */
export function Page({ settings, session }: Parts) {
  const user = useSyncExternalStore(session.onChange, session.user)
  // Who has signed out keeps the chat: they see what it says to somebody who is not signed in.
  const [wasHere, setWasHere] = useState(user !== null)
  if (user !== null && !wasHere) setWasHere(true)
  if (user === null && !wasHere) {
    return (
      <main className="way-in">
        <h1>Chat</h1>
        <button onClick={() => void session.signIn()}>Sign in</button>
      </main>
    )
  }
  return <Chat settings={settings} session={session} />
}

function Chat({ settings, session }: Parts) {
  const user = useSyncExternalStore(session.onChange, session.user)
  const token = user?.access_token
  const [thread, setThread] = useState(() => new URLSearchParams(location.search).get('thread'))
  const [errors, setErrors] = useState<readonly string[]>([])
  const open = (id: string | null): void => {
    history.pushState(null, '', id === null ? '/' : `/?thread=${encodeURIComponent(id)}`)
    setThread(id)
  }
  // What was refused to nobody is no error of who has signed in since.
  useEffect(() => setErrors([]), [user?.profile.sub])
  const onError = useCallback(({ code, error }: { readonly code: string; readonly error: Error }) => {
    setErrors((known) => [...known, `${code}: ${messageOf(error)}`])
  }, [])
  return (
    <CopilotKitProvider
      runtimeUrl={settings.runtimeUrl}
      headers={token === undefined ? NOBODY : { Authorization: `Bearer ${token}` }}
      onError={onError}
    >
      <Suggestions />
      <aside>
        <p>
          <b data-testid="who">{user?.profile.sub ?? 'nobody'}</b>
        </p>
        {user === null ? (
          <button onClick={() => void session.signInBeside()}>Sign in again</button>
        ) : (
          <>
            <button onClick={() => void session.renew()}>Renew the token</button>
            <button onClick={() => void session.signOut()}>Sign out</button>
          </>
        )}
        {user !== null && <Threads agent={AGENT} key={user.profile.sub} onOpen={open} />}
        <h2>Errors</h2>
        <ol data-testid="errors">
          {errors.map((text, at) => (
            <li key={at}>{text}</li>
          ))}
        </ol>
        <button onClick={() => setErrors([])}>Clear</button>
      </aside>
      <main>
        <CopilotChat agentId={AGENT} {...(thread === null ? {} : { threadId: thread })} attachments={{ enabled: true }} />
      </main>
    </CopilotKitProvider>
  )
}

/** A refused run has the status and the body of the answer; the message of such an error is raw JSON, which users should not read. */
function messageOf(error: Error): string {
  const { status, payload } = error as { readonly status?: unknown; readonly payload?: { readonly message?: unknown } }
  return typeof payload?.message === 'string' ? `${payload.message} (HTTP ${String(status)})` : error.message
}

/** The same object each time: another one would be other headers. */
const NOBODY = {}

/** Asks the agent, after each answer, what might be said next. */
function Suggestions() {
  useConfigureSuggestions({ instructions: 'Suggest what to say next.', available: 'after-first-message' })
  return null
}

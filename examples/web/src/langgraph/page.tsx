/** The sign-in, and for a signed-in user the chat, the user's threads and the errors. */
import { useStream } from '@langchain/langgraph-sdk/react'
import { useCallback, useMemo, useState, useSyncExternalStore } from 'react'
import type { Session } from '../session.ts'
import type { Settings } from '../settings.ts'
import { Conversation, type Interrupts, type State } from './conversation.tsx'
import { Threads } from './threads.tsx'

/** The graph of `examples/langgraph`. */
const ASSISTANT = 'notes'

interface Parts {
  readonly settings: Settings
  readonly session: Session
}

export function GraphPage({ settings, session }: Parts) {
  const user = useSyncExternalStore(session.onChange, session.user)
  if (user === null) {
    return (
      <main className="way-in">
        <h1>Graph chat</h1>
        <button onClick={() => void session.signIn()}>Sign in</button>
      </main>
    )
  }
  const { access_token: token, profile } = user
  return <Chat key={profile.sub} apiUrl={settings.runtimeUrl} token={token} name={profile.sub} session={session} />
}

interface ChatParts {
  readonly apiUrl: string
  readonly token: string
  readonly name: string
  readonly session: Session
}

function Chat({ apiUrl, token, name, session }: ChatParts) {
  const [thread, setThread] = useState(() => new URLSearchParams(location.search).get('thread'))
  const [progress, setProgress] = useState('')
  const [errors, setErrors] = useState<readonly string[]>([])
  const open = useCallback((id: string | null): void => {
    history.pushState(null, '', id === null ? '/' : `/?thread=${encodeURIComponent(id)}`)
    setThread(id)
  }, [])
  const onError = useCallback((error: unknown): void => setErrors((known) => [...known, String(error)]), [])
  // The hook makes a client for each new object. A new token needs one, a new rendering does not.
  const defaultHeaders = useMemo(() => ({ Authorization: `Bearer ${token}` }), [token])
  const chat = useStream<State, Interrupts>({
    apiUrl,
    assistantId: ASSISTANT,
    threadId: thread,
    onThreadId: open,
    // Keeps the id of the run in the session storage, and joins the run after a reload.
    reconnectOnMount: true,
    fetchStateHistory: true,
    defaultHeaders,
    onError,
    onCustomEvent: (event) => setProgress((event as { readonly progress: string }).progress),
    onFinish: () => setProgress(''),
  })
  return (
    <>
      <aside>
        <p>
          <b data-testid="who">{name}</b>
        </p>
        <button onClick={() => void session.signOut()}>Sign out</button>
        <Threads client={chat.client} isRunning={chat.isLoading} current={thread} onOpen={open} onError={onError} />
        <h2>Errors</h2>
        <ol data-testid="errors">
          {errors.map((text, at) => (
            <li key={at}>{text}</li>
          ))}
        </ol>
      </aside>
      <main>
        <Conversation chat={chat} />
        <p role="status">{progress}</p>
      </main>
    </>
  )
}

/** The console: sign-in, and one view for each question of an operator. */
import { render } from 'preact'
import { useCallback, useEffect, useState } from 'preact/hooks'
import { ask, Refused, type Session } from './api.ts'
import { Budgets } from './budgets.tsx'
import { Decisions } from './decisions.tsx'
import { Explain } from './explain.tsx'
import { Overview } from './overview.tsx'
import { Fault, faultText, onSessionEnd } from './parts.tsx'
import { PolicyView } from './policy.tsx'
import { Streams } from './streams.tsx'
import { Threads } from './threads.tsx'

const VIEWS = ['overview', 'decisions', 'streams', 'budgets', 'policy', 'explain', 'threads'] as const
type View = (typeof VIEWS)[number]

const FAULTS: Readonly<Record<string, string>> = {
  'no-role': 'Your account has no role for this console.',
  failed: 'The sign-in has failed. The log of the gateway has the cause.',
}

/** `#view` or `#explain/REQUEST-ID`. */
function place(): { readonly view: View; readonly detail: string } {
  const [name = '', detail = ''] = location.hash.slice(1).split('/')
  return { view: VIEWS.find((view) => view === name) ?? 'overview', detail: decoded(detail) }
}

/** A person may write any text into the address. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function Console() {
  const [session, setSession] = useState<Session | null>(null)
  const [fault, setFault] = useState<string | null>(FAULTS[location.hash.slice(1)] ?? null)
  const [{ view, detail }, setPlace] = useState(place)
  const look = useCallback(async () => {
    try {
      setSession(await ask<Session>('/console/session'))
    } catch (error) {
      setFault(faultText(error))
    }
  }, [])
  useEffect(() => {
    onSessionEnd(() => void look())
    const onHash = (): void => setPlace(place())
    addEventListener('hashchange', onHash)
    void look()
    return () => removeEventListener('hashchange', onHash)
  }, [look])
  if (session === null) return <Fault text={fault} />
  if (session.operator === null) return <SignIn hasOpenId={session.openId} fault={fault} onDone={() => void look()} />
  const { name, role } = session.operator
  const mayChange = role === 'operator'
  const leave = async (): Promise<void> => {
    await ask('/console/session', 'DELETE')
    await look()
  }
  return (
    <>
      <header>
        <h1>Threadwarden</h1>
        <nav aria-label="Views">
          {VIEWS.map((one) => (
            <a key={one} href={`#${one}`} {...(one === view ? { 'aria-current': 'page' as const } : {})}>
              {one}
            </a>
          ))}
        </nav>
        <p>
          {name}, {role}{' '}
          <button type="button" onClick={() => void leave()}>
            Sign out
          </button>
        </p>
      </header>
      <main>
        {view === 'overview' ? <Overview mayChange={mayChange} /> : null}
        {view === 'decisions' ? <Decisions onExplain={(id) => (location.hash = `#explain/${encodeURIComponent(id)}`)} /> : null}
        {view === 'streams' ? <Streams mayChange={mayChange} /> : null}
        {view === 'budgets' ? <Budgets /> : null}
        {view === 'policy' ? <PolicyView /> : null}
        {view === 'explain' ? <Explain requestId={detail} /> : null}
        {view === 'threads' ? <Threads mayChange={mayChange} /> : null}
      </main>
    </>
  )
}

interface SignInProps {
  readonly hasOpenId: boolean
  readonly fault: string | null
  readonly onDone: () => void
}

function SignIn({ hasOpenId, fault: before, onDone }: SignInProps) {
  const [credential, setCredential] = useState('')
  const [fault, setFault] = useState(before)
  const signIn = async (): Promise<void> => {
    try {
      await ask('/console/session', 'POST', { credential })
      onDone()
    } catch (error) {
      setFault(error instanceof Refused && error.status === 401 ? 'The credential is wrong.' : faultText(error))
    }
  }
  return (
    <main class="sign-in">
      <h1>Threadwarden</h1>
      <Fault text={fault} />
      {hasOpenId ? (
        <p>
          <a class="button" href="/console/sign-in">
            Sign in with your account
          </a>
        </p>
      ) : null}
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void signIn()
        }}
      >
        <label>
          Admin credential
          <input
            type="password"
            value={credential}
            required
            autocomplete="current-password"
            onInput={(event) => setCredential(event.currentTarget.value)}
          />
        </label>
        <button type="submit">Sign in</button>
      </form>
    </main>
  )
}

render(<Console />, document.body)

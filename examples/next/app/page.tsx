import { auth, signIn, signOut } from '../auth.ts'
import { Chat } from './chat.tsx'

export default async function Page() {
  const session = await auth()
  const name = session?.user?.name
  if (name == null) {
    return (
      <form
        action={async () => {
          'use server'
          await signIn('corp')
        }}
      >
        <button>Sign in</button>
      </form>
    )
  }
  return (
    <>
      <form
        action={async () => {
          'use server'
          await signOut()
        }}
      >
        <p data-testid="who">{name}</p>
        <button>Sign out</button>
      </form>
      <Chat />
    </>
  )
}

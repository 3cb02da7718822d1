/** The threads of whoever is signed in, as the gateway lists them. */
import { useThreads } from '@copilotkit/react-core/v2'

interface Parts {
  readonly agent: string
  readonly onOpen: (id: string | null) => void
}

/** A list, each of which opens its thread. */
export function Threads({ agent, onOpen }: Parts) {
  const { threads, listError, refetchThreads } = useThreads({ agentId: agent })
  return (
    <nav>
      <h2>Threads</h2>
      <button onClick={() => onOpen(null)}>New thread</button>
      <button onClick={() => refetchThreads()}>Refresh</button>
      <ul data-testid="threads">
        {threads.map(({ id, name }) => (
          <li key={id}>
            <button data-thread={id} onClick={() => onOpen(id)}>
              {name ?? id.slice(0, 8)}
            </button>
          </li>
        ))}
      </ul>
      {listError !== null && <p role="alert">{listError.message}</p>}
    </nav>
  )
}

/** The user's threads: open one, delete one, begin a new one. */
import type { Client, Thread } from '@langchain/langgraph-sdk'
import { useCallback, useEffect, useState } from 'react'

interface Parts {
  readonly client: Client
  readonly isRunning: boolean
  readonly current: string | null
  readonly onOpen: (id: string | null) => void
  readonly onError: (error: unknown) => void
}

export function Threads({ client, isRunning, current, onOpen, onError }: Parts) {
  const [threads, setThreads] = useState<readonly Thread[]>([])
  const refresh = useCallback(
    () => client.threads.search({ limit: 100, sortBy: 'updated_at', sortOrder: 'desc' }).then(setThreads, onError),
    [client, onError],
  )
  useEffect(() => void refresh(), [refresh, isRunning, current])
  const remove = async (id: string): Promise<void> => {
    try {
      await client.threads.delete(id)
    } catch (error) {
      onError(error)
    }
    if (id === current) onOpen(null)
    await refresh()
  }
  return (
    <nav>
      <h2>Threads</h2>
      <button onClick={() => onOpen(null)}>New thread</button>
      <button onClick={() => void refresh()}>Refresh</button>
      <ul data-testid="threads">
        {threads.map(({ thread_id: id, status }) => (
          <li key={id} data-thread={id}>
            <button onClick={() => onOpen(id)}>
              {id.slice(0, 8)} ({status})
            </button>
            <button onClick={() => void remove(id)}>Delete</button>
          </li>
        ))}
      </ul>
    </nav>
  )
}

'use client'
/** A small chat: the threads of the user, and a run on a new or an opened one. */
import { HttpAgent, type Message } from '@ag-ui/client'
import { useCallback, useEffect, useState } from 'react'

const BASE = '/api/copilotkit'

export function Chat() {
  const [threads, setThreads] = useState<readonly string[]>([])
  const [thread, setThread] = useState<string>()
  const [messages, setMessages] = useState<readonly Message[]>([])
  const [error, setError] = useState('')

  const read = useCallback(async (path: string) => {
    const answer = await fetch(`${BASE}${path}`)
    const body = await answer.json()
    if (!answer.ok) setError(body.message)
    return answer.ok ? body : undefined
  }, [])
  const list = useCallback(async () => {
    const body = await read('/threads?agentId=default')
    if (body !== undefined) setThreads(body.threads.map(({ id }: { readonly id: string }) => id))
  }, [read])
  const open = useCallback(
    async (id: string) => {
      setError('')
      const body = await read(`/threads/${encodeURIComponent(id)}/messages`)
      setThread(body === undefined ? undefined : id)
      setMessages(body?.messages ?? [])
    },
    [read],
  )
  const say = async (content: string) => {
    const threadId = thread ?? crypto.randomUUID()
    setThread(threadId)
    const user: Message = { id: crypto.randomUUID(), role: 'user', content }
    const agent = new HttpAgent({ url: `${BASE}/agent/default/run`, threadId, initialMessages: [...messages, user] })
    await agent.runAgent({}, { onMessagesChanged: ({ messages: changed }) => setMessages([...changed]) })
    await list()
  }

  useEffect(() => {
    void list()
    const named = new URLSearchParams(location.search).get('thread')
    if (named !== null) void open(named)
  }, [list, open])

  return (
    <>
      <ul data-testid="threads">
        {threads.map((id) => (
          <li key={id}>
            <button onClick={() => void open(id)}>{id}</button>
          </li>
        ))}
      </ul>
      <ol data-testid="messages">
        {messages.map(({ id, content }) => (
          <li key={id}>{typeof content === 'string' ? content : ''}</li>
        ))}
      </ol>
      <form
        action={async (form) => {
          await say(String(form.get('text'))).catch((caught: unknown) => setError(String(caught)))
        }}
      >
        <input name="text" aria-label="Message" />
        <button>Send</button>
      </form>
      <p role="alert">{error}</p>
    </>
  )
}

/** The messages of a thread, the approval that a run waits for, and the input. */
import type { Message } from '@langchain/langgraph-sdk'
import type { useStream } from '@langchain/langgraph-sdk/react'
import { useState, type FormEvent } from 'react'

export type State = { messages: Message[] }

export type Interrupts = { InterruptType: { message: string } }

interface Parts {
  readonly chat: ReturnType<typeof useStream<State, Interrupts>>
}

export function Conversation({ chat }: Parts) {
  const [text, setText] = useState('')
  const send = (event: FormEvent): void => {
    event.preventDefault()
    void chat.submit({ messages: [said(text)] })
    setText('')
  }
  return (
    <>
      <ol data-testid="messages" aria-busy={chat.isLoading}>
        {chat.messages.map((message, at) => (
          <li key={message.id ?? at} data-type={message.type}>
            <p>{textOf(message)}</p>
            {message.type === 'human' && <Versions chat={chat} message={message} at={at} />}
          </li>
        ))}
      </ol>
      <Approval chat={chat} />
      <form onSubmit={send}>
        <input aria-label="Message" value={text} onChange={(event) => setText(event.target.value)} />
        <button>Send</button>
        {chat.isLoading && (
          <button type="button" onClick={() => void chat.stop()}>
            Stop
          </button>
        )}
      </form>
    </>
  )
}

/** Asks again from the checkpoint before a message, and switches between what was asked there. */
function Versions({ chat, message, at }: Parts & { readonly message: Message; readonly at: number }) {
  const about = chat.getMessagesMetadata(message, at)
  const before = about?.firstSeenState?.parent_checkpoint
  const { branch, branchOptions = [] } = about ?? {}
  const again = (): void => {
    const text = window.prompt('Ask instead', textOf(message))
    if (text !== null && before) void chat.submit({ messages: [said(text)] }, { checkpoint: before })
  }
  return (
    <>
      {before && <button onClick={again}>Ask something else</button>}
      {branchOptions.map((option, number) => (
        <button key={option} disabled={option === branch} onClick={() => chat.setBranch(option)}>
          Version {number + 1}
        </button>
      ))}
    </>
  )
}

function Approval({ chat }: Parts) {
  if (chat.interrupt === undefined) return null
  const answer = (approved: boolean): void => void chat.submit(undefined, { command: { resume: { approved } } })
  return (
    <section data-testid="interrupt">
      <p>{chat.interrupt.value?.message}</p>
      <button onClick={() => answer(true)}>Approve</button>
      <button onClick={() => answer(false)}>Refuse</button>
    </section>
  )
}

function said(content: string): Message {
  return { type: 'human', content }
}

function textOf({ content }: Message): string {
  return typeof content === 'string' ? content : content.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

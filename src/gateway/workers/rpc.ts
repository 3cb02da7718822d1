/** Requests and answers between two processes: each side calls the other's handlers by name. */

/** The handlers of a side, by name. Arguments and results must survive a structured clone. */
export type Handlers<Names extends string = string> = Readonly<Record<Names, (asked: never) => unknown>>

/** Calls the other side. Rejects with its error, or if it is gone. */
export type Call<Others> = <Name extends keyof Others & string>(
  name: Name,
  asked: Asked<Others[Name]>,
) => Promise<Answered<Others[Name]>>

export type Asked<Handler> = Handler extends (asked: infer Question) => unknown ? Question : never
export type Answered<Handler> = Handler extends (asked: never) => infer Answer ? Awaited<Answer> : never

export interface Channel {
  /** @param failed called if the other side can't be reached any more */
  send(message: unknown, failed: (error: Error | null) => void): void
  onMessage(listener: (message: unknown) => void): void
}

type Message =
  | { readonly kind: 'question'; readonly id: number; readonly name: string; readonly asked: unknown }
  | { readonly kind: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'error'; readonly id: number; readonly message: string }

/** Marks our own messages: the cluster module sends others on the same channel. */
const MARK = 'threadwarden'

export class Gone extends Error {
  override readonly name = 'Gone'
}

/** @returns the function for calls, and one that reports that the other side is gone */
export function connectRpc<Others>(
  channel: Channel,
  handlers: Handlers,
): { readonly call: Call<Others>; readonly end: () => void } {
  const waiting = new Map<number, { readonly resolve: (value: never) => void; readonly reject: (error: Error) => void }>()
  let last = 0
  let ended = false
  const send = (message: Message): void => {
    const failed = (error: Error | null): void => {
      if (error === null || message.kind !== 'question') return
      waiting.get(message.id)?.reject(new Gone('the other process is gone'))
      waiting.delete(message.id)
    }
    channel.send({ [MARK]: message }, failed)
  }
  // The two casts below cross the channel, where types end: `Call` and `Handlers` agree, because each side has the other's type.
  const answer = async ({ id, name, asked }: Extract<Message, { kind: 'question' }>): Promise<void> => {
    try {
      send({ kind: 'answer', id, value: await handlers[name]?.(asked as never) })
    } catch (error) {
      send({ kind: 'error', id, message: error instanceof Error ? error.message : String(error) })
    }
  }
  const end = (): void => {
    ended = true
    for (const { reject } of waiting.values()) reject(new Gone('the other process is gone'))
    waiting.clear()
  }
  channel.onMessage((received) => {
    if (typeof received !== 'object' || received === null || !(MARK in received)) return
    const message = received[MARK] as Message
    if (message.kind === 'question') return void answer(message)
    const asker = waiting.get(message.id)
    waiting.delete(message.id)
    if (message.kind === 'answer') asker?.resolve(message.value as never)
    else asker?.reject(new Error(message.message))
  })
  return {
    call: (name, asked) =>
      new Promise((resolve, reject) => {
        const id = ++last
        waiting.set(id, { resolve, reject })
        if (ended) end()
        else send({ kind: 'question', id, name, asked })
      }),
    end,
  }
}

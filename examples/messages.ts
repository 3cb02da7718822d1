/** Reading and writing chat text in AG-UI's terms. */
import type { Message } from '@ag-ui/core'

/** The text of the last message that the user wrote; empty if there's none. Parts that aren't text are left out. */
export function lastUserText(messages: readonly Message[]): string {
  const content = messages.findLast((message) => message.role === 'user')?.content
  if (!Array.isArray(content)) return typeof content === 'string' ? content : ''
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

/** Cuts a text into pieces, as a model's answer comes: about `count` of them, none empty. */
export function pieces(text: string, count: number): string[] {
  const letters = [...text]
  const length = Math.max(1, Math.ceil(letters.length / count))
  const cut: string[] = []
  for (let at = 0; at < letters.length; at += length) cut.push(letters.slice(at, at + length).join(''))
  return cut
}

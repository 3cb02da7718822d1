/** Reading and writing chat text in AG-UI's terms. */
import type { Message } from '@ag-ui/core'

/** The text of the last message that the user wrote; empty if there's none. Parts that aren't text are left out. */
export function lastUserText(messages: readonly Message[]): string {
  const content = messages.findLast((message) => message.role === 'user')?.content
  if (!Array.isArray(content)) return typeof content === 'string' ? content : ''
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

/** How many bytes the user attached to the last message. */
export function attachedBytes(messages: readonly Message[]): number {
  const content = messages.findLast((message) => message.role === 'user')?.content
  if (!Array.isArray(content)) return 0
  const data = content.map((part) => ('source' in part && part.source.type === 'data' ? part.source.value : ''))
  return data.reduce((sum, base64) => sum + Buffer.byteLength(base64, 'base64'), 0)
}

/** Cuts a text into pieces, as a model's answer comes: about `count` of them, none empty. */
export function pieces(text: string, count: number): string[] {
  const letters = [...text]
  const length = Math.max(1, Math.ceil(letters.length / count))
  const cut: string[] = []
  for (let at = 0; at < letters.length; at += length) cut.push(letters.slice(at, at + length).join(''))
  return cut
}

/** What a caller may send as messages: roles, number, size, media and URL schemes (docs/reference/policy.md, "messages"). */
import { isObject, type Json, type JsonObject } from '../json/read.ts'
import type { Steps } from '../json/steps.ts'
import { refuse, type Refusal } from '../reasons.ts'

export const MESSAGE_ROLES = ['user', 'assistant', 'tool', 'reasoning', 'activity', 'system', 'developer'] as const

export type MessageRole = (typeof MESSAGE_ROLES)[number]

/** Types of content parts besides `text`. */
export const MEDIA_KINDS = ['image', 'audio', 'video', 'document', 'binary'] as const

export interface MessageRules {
  readonly roles: ReadonlySet<string>
  /** What happens to a message of another role. */
  readonly others: 'drop' | 'refuse'
  readonly most: number | 'off'
  /** Bytes of the texts of one message, without its keys. */
  readonly size: number | 'off'
  readonly media: ReadonlySet<string> | 'all'
  /** In lower case. `data` is also content in the body itself, and `provider` a file that a model provider holds. */
  readonly schemes: ReadonlySet<string> | 'all'
  readonly history: 'trust' | 'verify'
}

const MESSAGES_AT_ONCE = 256

/**
 * @param messages without keys that AG-UI does not have
 * @returns the same list if all of it passes
 */
export function* applyMessageRules(
  messages: readonly Json[],
  rules: MessageRules,
  dropped: string[],
): Steps<readonly Json[] | Refusal> {
  const kept: Json[] = []
  for (const [at, message] of messages.entries()) {
    if (at % MESSAGES_AT_ONCE === MESSAGES_AT_ONCE - 1) yield
    const role = isObject(message) ? message['role'] : undefined
    if (typeof role !== 'string' || !rules.roles.has(role)) {
      if (rules.others === 'refuse') return refuse('message-role-not-allowed')
      dropped.push(`messages[${isKnownRole(role) ? role : ''}]`)
      continue
    }
    kept.push(message)
    if (rules.most !== 'off' && kept.length > rules.most) return refuse('messages-too-many')
    const refusal = refusalOf(message as JsonObject, rules)
    if (refusal !== null) return refusal
  }
  return kept.length === messages.length ? messages : kept
}

function isKnownRole(role: unknown): role is MessageRole {
  return (MESSAGE_ROLES as readonly unknown[]).includes(role)
}

function refusalOf(message: JsonObject, { size, media, schemes }: MessageRules): Refusal | null {
  if (size !== 'off' && textLeft(message, size) < 0) return refuse('message-too-large')
  const { content } = message
  if ((media === 'all' && schemes === 'all') || !Array.isArray(content)) return null
  // An activity is an application's own value, and has no parts.
  if (message['role'] === 'activity') return null
  return (content as readonly Json[]).every((part) => partPasses(part, media, schemes))
    ? null
    : refuse('message-part-not-allowed')
}

/** Stops as soon as the texts are larger than `most`: a body may be large. */
function textLeft(value: Json, most: number): number {
  if (typeof value === 'string') return most - Buffer.byteLength(value)
  if (typeof value !== 'object' || value === null) return most
  let left = most
  for (const part of Array.isArray(value) ? (value as readonly Json[]) : Object.values(value)) {
    left = textLeft(part, left)
    if (left < 0) return left
  }
  return left
}

function partPasses(part: Json, media: MessageRules['media'], schemes: MessageRules['schemes']): boolean {
  if (!isObject(part)) return false
  if (part['type'] === 'text') return true
  if (media !== 'all' && !media.has(part['type'] as string)) return false
  if (schemes === 'all') return true
  const used = schemesOf(part)
  return used.length > 0 && used.every((scheme) => scheme !== null && schemes.has(scheme))
}

/** Null for a place that names no scheme, which an agent may complete. */
function schemesOf(part: JsonObject): readonly (string | null)[] {
  if (part['type'] === 'binary') {
    const { url = null, data = null, id = null } = part
    return [...(url === null ? [] : [schemeOf(url)]), ...(data === null ? [] : ['data']), ...(id === null ? [] : ['provider'])]
  }
  const { source } = part
  if (!isObject(source)) return []
  if (source['type'] === 'data') return ['data']
  return [source['type'] === 'file' ? 'provider' : schemeOf(source['value'])]
}

/** RFC 3986 §3.1. Spaces and control characters are refused: readers of URLs differ about them. */
function schemeOf(url: Json | undefined): string | null {
  const [, scheme] = typeof url === 'string' ? (/^([A-Za-z][A-Za-z0-9+.-]*):[^\s\p{Cc}\\]*$/u.exec(url) ?? []) : []
  return scheme?.toLowerCase() ?? null
}

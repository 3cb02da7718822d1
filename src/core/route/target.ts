/** Reads a request target; refuses one with two readings (runtime-behaviour.md, "Targets and ids"). Never forwards it raw. */
import { refuse, type Refusal } from '../reasons.ts'

/** Where the keys of assertions are published, outside every base path (docs/contributing/invariants.md, 1). */
export const KEY_SET_TARGET = '/.well-known/jwks.json'

export interface Target {
  readonly outcome: 'read'
  readonly segments: readonly string[]
  readonly query: ReadonlyMap<string, string>
  readonly droppedQueryNames: number
}

// RFC 3986 §3.3 pchar without ';' (routers split matrix parameters) and without what encodeURIComponent would escape.
const PATH_CHARACTERS = /^[A-Za-z0-9\-._~!*'()%:/]*$/
// RFC 3986 §3.4, also without ';', which some parsers take for a separator.
const QUERY_CHARACTERS = /^[A-Za-z0-9\-._~!*'()%:/?@$&+,=]*$/
const CONTROL = /[\u0000-\u001f\u007f]/

/** Each known query name may occur once. Refuses with the code `target-malformed`. */
export function readTarget(raw: string, knownQueryNames: ReadonlySet<string>): Target | Refusal {
  if (!raw.startsWith('/')) return refuse('target-not-origin-form')
  const mark = raw.indexOf('?')
  const path = mark === -1 ? raw : raw.slice(0, mark)
  const query = readQuery(mark === -1 ? '' : raw.slice(mark + 1), knownQueryNames)
  if ('outcome' in query) return query
  const segments = readPath(path)
  if ('outcome' in segments) return segments
  return { outcome: 'read', segments, query: query.query, droppedQueryNames: query.droppedQueryNames }
}

function readPath(path: string): readonly string[] | Refusal {
  if (!PATH_CHARACTERS.test(path)) return refuse('target-character')
  if (path === '/') return []
  const parts = path.slice(1).split('/')
  // Text without an escape needs no decoding: it has only ':' and the characters that encodeURIComponent leaves as they are.
  if (!path.includes('%')) {
    if (parts.includes('')) return refuse('target-empty-segment')
    return parts.includes('.') || parts.includes('..') ? refuse('target-dot-segment') : parts
  }
  const segments: string[] = []
  for (const raw of parts) {
    if (raw === '') return refuse('target-empty-segment')
    const decoded = decode(raw)
    if (decoded === null) return refuse('target-encoding')
    if (/[/\\%]/.test(decoded) || CONTROL.test(decoded)) return refuse('target-separator')
    if (decoded === '.' || decoded === '..') return refuse('target-dot-segment')
    // Each segment has one spelling: what encodeURIComponent writes, or that with a raw ':'.
    if (encodeURIComponent(decoded).replaceAll('%3A', ':') !== raw.replaceAll('%3A', ':')) return refuse('target-encoding')
    segments.push(decoded)
  }
  return segments
}

const NO_QUERY: Pick<Target, 'query' | 'droppedQueryNames'> = { query: new Map(), droppedQueryNames: 0 }

function readQuery(text: string, known: ReadonlySet<string>): Pick<Target, 'query' | 'droppedQueryNames'> | Refusal {
  if (text === '') return NO_QUERY
  const query = new Map<string, string>()
  if (!QUERY_CHARACTERS.test(text)) return refuse('target-character')
  let droppedQueryNames = 0
  for (const pair of text.split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const name = decode((equals === -1 ? pair : pair.slice(0, equals)).replaceAll('+', ' '))
    const value = decode(equals === -1 ? '' : pair.slice(equals + 1).replaceAll('+', ' '))
    if (name === null || value === null || !isQueryValue(name) || !isQueryValue(value)) return refuse('query-encoding')
    if (!known.has(name)) droppedQueryNames += 1
    else if (query.has(name)) return refuse('query-name-repeated')
    else query.set(name, value)
  }
  return { query, droppedQueryNames }
}

export function isQueryValue(text: string): boolean {
  return text.isWellFormed() && !CONTROL.test(text)
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

/** @param mounts whose public paths do not lie within one another */
export function findMount<Mount extends { readonly publicPath: string }>(
  mounts: readonly Mount[],
  { segments }: Target,
): { readonly mount: Mount; readonly segments: readonly string[] } | null {
  for (const mount of mounts) {
    const own = below(segments, mount.publicPath)
    if (own !== null) return { mount, segments: own }
  }
  return null
}

/** `base` is `''` or `/a/b`, without a trailing slash. Returns `[]` for the base itself, null for a path outside it. */
function below(segments: readonly string[], base: string): readonly string[] | null {
  const prefix = base === '' ? [] : base.slice(1).split('/')
  if (prefix.some((word, at) => segments[at] !== word)) return null
  return segments.slice(prefix.length)
}

/**
 * Readers besides the runtime's router, who would take what was let through for something else than what was decided on:
 * a database with a uuid column, whoever shares what has no name, looks an id up in a plain object or puts it in a path,
 * and whoever takes the first of two equal keys.
 */

/** Keys that would be obeyed: those of a single-route envelope (runtime-behaviour.md, "Single-route transport"), and of others' threads and names. */
export const NEVER_SENT: readonly string[] = ['method', 'params', 'sourceThreadIds', 'userId', '__proto__']

/** What is wrong with an id that was let through, or null. */
export function misreading(kind: string, id: string): string | null {
  if (id === '') return 'is the id of everybody (runtime-behaviour.md, "Targets and ids")'
  if (id !== id.trim() || /[\0-\x1f\x7f-\x9f]/.test(id) || !id.isWellFormed()) return 'is cut or changed on its way'
  if (/[/\\?#%]/.test(id) || /^\.+$/.test(id))
    return 'is another path to who does not encode it (runtime-behaviour.md, "Targets and ids")'
  if (kind === 'agentId') return id in {} ? 'is a name that every object has (runtime-behaviour.md, "Run input")' : null
  const uuid = kind === 'threadId' ? asUuid(id) : null
  return uuid === null || uuid === id ? null : `is ${uuid} to a uuid column (runtime-behaviour.md, "Targets and ids")`
}

/** A key that some object in a JSON text has twice, in whatever spelling; null if none has. */
export function repeatedKey(text: string): string | null {
  const open: Set<string>[] = []
  for (const [token, key] of text.matchAll(/("(?:[^"\\]|\\.)*")\s*:|"(?:[^"\\]|\\.)*"|[{}]/g)) {
    if (token === '{') open.push(new Set())
    else if (token === '}') open.pop()
    else if (key !== undefined) {
      const name = JSON.parse(key) as string
      if (open.at(-1)?.has(name) === true) return name
      open.at(-1)?.add(name)
    }
  }
  return null
}

/** How PostgreSQL writes what it takes for a UUID: 32 digits, perhaps in braces, a hyphen after any four. */
function asUuid(id: string): string | null {
  const text = id.toLowerCase().replace(/^urn:uuid:/, '')
  const digits = (/^\{(.*)\}$/.exec(text)?.[1] ?? text).replace(/([0-9a-f]{4})-(?=[0-9a-f])/g, '$1')
  const parts = /^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$/.exec(digits)
  return parts === null ? null : parts.slice(1).join('-')
}

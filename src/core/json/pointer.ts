/** JSON pointers (RFC 6901) over the claims of a token. */

/** True for a JSON pointer: `''`, or `/` and reference tokens in which `~` occurs only as `~0` or `~1` (RFC 6901 §3). */
export function isPointer(text: string): boolean {
  return /^(?:\/(?:[^~/]|~[01])*)*$/.test(text)
}

/** RFC 6901 §4. Finds only what the document contains: nothing of a prototype, and no length of a list. */
export function valueAt(document: unknown, pointer: string): unknown {
  let value = document
  for (const raw of pointer.split('/').slice(1)) {
    const token = raw.replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof value !== 'object' || value === null || !isMember(value, token)) return undefined
    value = (value as Readonly<Record<string, unknown>>)[token]
  }
  return value
}

function isMember(value: object, token: string): boolean {
  return Object.prototype.propertyIsEnumerable.call(value, token)
}

/** Stable names in place of what a support bundle must not contain. They are counted, so nothing can be computed back. */

export interface Pseudonyms {
  /** The same text of the same kind gets the same name in one bundle: `<user 2>`. */
  of(kind: string, text: string): string
  /** An address without its host, path and credentials: scheme, kind of host, and port. */
  ofUrl(text: string): string
}

export function makePseudonyms(): Pseudonyms {
  const known = new Map<string, Map<string, number>>()
  const of: Pseudonyms['of'] = (kind, text) => {
    let names = known.get(kind)
    if (names === undefined) {
      names = new Map()
      known.set(kind, names)
    }
    const number = names.get(text) ?? names.size + 1
    names.set(text, number)
    return `<${kind} ${number}>`
  }
  return {
    of,
    ofUrl(text) {
      const { protocol, hostname, port, username, password } = new URL(text)
      const parts = [
        protocol.slice(0, -1),
        hostKind(hostname),
        ...(port === '' ? [] : [`port ${port}`]),
        ...(username + password === '' ? [] : ['with credentials']),
      ]
      return `${of('address', text)} ${parts.join(', ')}`
    },
  }
}

const LOOPBACK = /^(?:localhost|127\.|\[::1\])/
const PRIVATE = /^(?:10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|\[f[cd])/

function hostKind(hostname: string): string {
  if (LOOPBACK.test(hostname)) return 'loopback'
  return PRIVATE.test(hostname) ? 'private network' : hostname.includes('.') ? 'full host name' : 'short host name'
}

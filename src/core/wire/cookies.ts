/** Reads cookies by name (RFC 6265 §4.2). */

/** The cookie names of RFC 6265 §4.1.1. */
export const COOKIE_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/** Every value of the cookie, as it was sent: a browser sends two where two hosts or paths have set the same name. */
export function cookieValues(lines: readonly string[] | undefined, name: string): readonly string[] {
  return (lines ?? []).flatMap((line) =>
    line.split(';').flatMap((pair) => {
      const at = pair.indexOf('=')
      return at !== -1 && trimmed(pair.slice(0, at)) === name ? [trimmed(pair.slice(at + 1))] : []
    }),
  )
}

/** Removes only the white space of HTTP (RFC 9110 §5.6.3), where `trim` removes more. */
function trimmed(text: string): string {
  return text.replace(/^[ \t]+|[ \t]+$/g, '')
}

/** Which addresses keys may be fetched from. */

/** True for https, and for http to a loopback address. */
export function isFetchable(text: string): boolean {
  if (!URL.canParse(text)) return false
  const url = new URL(text)
  const loopback = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(url.hostname)
  return url.protocol === 'https:' || (url.protocol === 'http:' && loopback)
}

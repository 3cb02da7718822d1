/** Tells which addresses are on this machine, and from which addresses the gateway may fetch keys. */

/** True for a host name, as URL gives it, that never leaves this machine (RFC 5735 §3, RFC 4291 §2.5.3, RFC 6761 §6.3). */
export function isLoopbackHost(hostname: string): boolean {
  return /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname)
}

export function isFetchable(text: string, insecureHttp = false): boolean {
  if (!URL.canParse(text)) return false
  const url = new URL(text)
  // Credentials in the URL would not be sent, and they would appear in the log.
  if (url.username !== '' || url.password !== '') return false
  return url.protocol === 'https:' || (url.protocol === 'http:' && (insecureHttp || isLoopbackHost(url.hostname)))
}

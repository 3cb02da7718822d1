/** Finds errors of cookie sessions: keys that no browser could use together, or that would open them to other pages. */
import type { Report } from '../document/document.ts'
import { mountsOf } from './mounts.ts'
import type { Config } from './schema.ts'

export function checkCookies(config: Config, report: Report): void {
  const { authentication, cors, listen } = config
  const issuers = Object.entries(authentication.issuers)
  const names = issuers.flatMap(([, { credential }]) => credential.cookie ?? [])
  if (names.length > 0 && cors.origins.includes('*')) {
    report(
      ['cors', 'origins'],
      '"*" lets every page call, and an issuer has a credential cookie, which browsers send by themselves',
      'name the origins',
    )
  }
  const hasPages = listen.publicOrigins.length > 0 || (cors.credentials && cors.origins.length > 0)
  for (const [key, { credential }] of issuers) {
    if (credential.cookie === undefined || hasPages) continue
    report(
      ['authentication', 'issuers', key, 'credential', 'cookie'],
      'is accepted from no page: the gateway does not know its own origin, and no other page may send cookies',
      'write listen.publicOrigins: ["https://chat.example.com"], or cors.origins with cors.credentials: true',
    )
  }
  for (const { place, forwardCookies, headers } of mountsOf(config)) {
    for (const [at, name] of forwardCookies.entries()) {
      const path = [...place, 'forwardCookies', at]
      if (!names.includes(name)) {
        report(path, `${name} is not the credential cookie of an issuer: nothing verifies it`, 'remove it')
      } else if (authentication.mode === 'off') {
        report(path, 'cannot go with authentication.mode: off: nothing verifies the cookie', 'remove it')
      }
    }
    if (forwardCookies.length > 0 && Object.keys(headers).some((name) => name.toLowerCase() === 'cookie')) {
      report([...place, 'forwardCookies'], 'cannot go with the header Cookie in headers: one of them would be lost', 'keep one')
    }
  }
}

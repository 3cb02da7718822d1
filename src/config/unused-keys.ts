/** Finds keys of a valid configuration that have no effect, because another key switches off what they are about. */
import type { Report } from '../document/document.ts'
import type { Config, IssuerConfig } from './schema.ts'

const DEFAULT_AUDIT_FILE = './data/audit.jsonl'

/** True for a key that is in the file, and has no default value by chance. */
type IsWritten = (path: readonly string[]) => boolean

export function checkForUnused(config: Config, isWritten: IsWritten, warn: Report): void {
  const unused = (path: readonly string[], when: string, hint: string): void => {
    if (isWritten(path)) warn(path, `has no effect ${when}`, hint)
  }
  const { audit, streams, cors, authentication, identity, upstream, upstreams, agents } = config
  // The documented configuration names the default file beside `to: off`.
  const isDefault = isWritten(['audit', 'to']) && audit.file === DEFAULT_AUDIT_FILE
  if (audit.to !== 'file' && !isDefault)
    unused(['audit', 'file'], `with audit.to: ${audit.to}`, 'write to: file, or remove this key')
  if (audit.to === 'off' && audit.interruptContent)
    unused(['audit', 'interruptContent'], 'with audit.to: off', 'write to: file or stdout, or remove this key')
  if (streams.tokenExpiry !== 'grace') {
    const hint = 'write tokenExpiry: grace, or remove this key'
    unused(['streams', 'grace'], `with streams.tokenExpiry: ${streams.tokenExpiry}`, hint)
  }
  if (cors.origins.length === 0 && cors.credentials) {
    unused(['cors', 'credentials'], 'without cors.origins', 'name the origins, or remove this key')
  }
  const hasCookie = Object.values(authentication.issuers).some(({ credential }) => credential.cookie !== undefined)
  if (config.listen.publicOrigins.length > 0 && !hasCookie) {
    const hint = 'write credential: { cookie: NAME } for an issuer, or remove this key'
    unused(['listen', 'publicOrigins'], 'without a credential cookie', hint)
  }
  if (config.listen.fd !== undefined) {
    for (const key of ['host', 'port'])
      unused(['listen', key], 'with listen.fd', 'write it in the .socket unit, and remove this key')
  }
  if (authentication.mode === 'off') {
    for (const key of ['issuers', 'clockTolerance', 'tokenCache']) {
      unused(['authentication', key], 'with authentication.mode: off', 'write mode: required or optional, or remove this key')
    }
  } else {
    for (const [key, issuer] of Object.entries(authentication.issuers)) {
      const place = ['authentication', 'issuers', key]
      for (const [name, when] of unusedOf(issuer)) unused([...place, name], when, 'remove this key')
    }
  }
  if (identity.assertion?.replaceAuthorization === true) {
    const hint = 'remove this key: the assertion is sent as Authorization'
    unused(['identity', 'assertion', 'header'], 'with replaceAuthorization: true', hint)
  }
  const mounts = [
    [['upstream'], upstream],
    ...Object.entries(upstreams).map(([key, one]) => [['upstreams', key], one] as const),
    ...Object.entries(agents).map(([key, one]) => [['agents', key], one] as const),
  ] as const
  for (const [place, mount] of mounts) {
    if (mount?.url.startsWith('http:') === true) {
      for (const name of ['ca', 'tls']) {
        unused([...place, name], 'with an http:// URL', `write https:// in ${place.join('.')}.url, or remove this key`)
      }
    }
    if (identity.assertion === undefined) {
      unused([...place, 'assertionAudience'], 'without identity.assertion', 'write identity.assertion, or remove this key')
    } else if (identity.assertion.replaceAuthorization) {
      unused([...place, 'forwardAuthorization'], 'with identity.assertion.replaceAuthorization: true', 'remove this key')
    }
  }
  if (config.shadowPolicy !== undefined && config.shadowPolicy === config.policy) {
    unused(['shadowPolicy'], 'while it is the same file as policy', 'name another file, or remove this key')
  }
}

/** Keys of an issuer whose keys are in a file, or that only answers about opaque tokens. */
function unusedOf(issuer: IssuerConfig): readonly (readonly [key: string, when: string])[] {
  const source = issuer.publicKeyFile !== undefined ? 'publicKeyFile' : issuer.secretFile !== undefined ? 'secretFile' : null
  const when = source !== null ? `with ${source}: no keys are fetched` : 'without algorithms: no keys are fetched'
  const hasNoKeys = issuer.algorithms === undefined
  if (source === null && !hasNoKeys) return []
  const ofKeys = ['keyCache', 'staleIfError'].map((key) => [key, when] as const)
  // The introspection endpoint may need them as well.
  const ofFetches =
    issuer.introspection === undefined ? ['ca', 'insecureHttp', 'bearerTokenFile'].map((key) => [key, when] as const) : []
  return [...ofKeys, ...ofFetches]
}

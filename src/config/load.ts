/** Loads a configuration: reads it, fills in secrets, checks it and resolves paths. Reports every error at once. */
import { dirname, resolve } from 'node:path'
import { forwardingFault, settingFault } from '../core/wire/headers.ts'
import { valueAt } from '../core/json/pointer.ts'
import type { UpstreamApi } from '../core/route/all-routes.ts'
import {
  faultsFound,
  parseDocumentAs,
  placeIn,
  readDocument,
  type Outcome,
  type Place,
  type Report,
  type SourceDocument,
} from '../document/document.ts'
import { inOrder, type Fault } from '../document/fault.ts'
import type { Sources } from '../document/sources.ts'
import { checkCookies } from './cookie-faults.ts'
import { isStorePlaced, placeDataFiles } from './data-folder.ts'
import { ASSERTION_HEADER } from './identity-schema.ts'
import { checkListeners, checkMounts } from './mount-faults.ts'
import { mountsOf } from './mounts.ts'
import { DEFAULT_POLICY, policyFile, policyReferenceFault, type PolicyFile } from './policy-file.ts'
import { storeOf } from './store-place.ts'
import { configSchema, type Config } from './schema.ts'
import { fillReferences, withoutPlainSecrets, type Filled } from './secrets.ts'
import { checkForWarnings } from './warnings.ts'

export interface LoadedConfig {
  readonly config: Config
  readonly isStorePlaced: boolean
  readonly warnings: readonly Fault[]
  /** As in the file, with references instead of their values, and without plain secrets and the addresses of listeners. */
  readonly written: unknown
}

/** What the policy loader needs, even from an invalid configuration, so that all errors are reported at once. */
export interface Named {
  readonly policy: PolicyFile
  readonly shadowPolicy: PolicyFile | null
  readonly places: { readonly policy: Place; readonly shadowPolicy: Place }
  readonly surroundings: {
    readonly issuers: readonly string[]
    readonly forwardHeaders: readonly string[]
    readonly apis: readonly UpstreamApi[]
    readonly mode: 'required' | 'optional' | 'off'
  }
  readonly secrets: readonly string[]
}

/** For a policy that the configuration does not name. */
export function surroundingsOf(config: Config): Named['surroundings'] {
  const { authentication, forwardHeaders } = config
  const apis = [...new Set(mountsOf(config).map(({ api }) => api))]
  return { issuers: Object.keys(authentication.issuers), forwardHeaders, apis, mode: authentication.mode }
}

/** `named` is null for a file that is not YAML. */
export type ConfigOutcome =
  | (Outcome<LoadedConfig> & { readonly named: Named })
  | { readonly ok: false; readonly faults: readonly Fault[]; readonly named: null }

export function loadConfig(file: string, environment: NodeJS.ProcessEnv, sources: Sources): ConfigOutcome {
  const read = readDocument(sources, file)
  if (!read.ok) return { ...read, named: null }
  const document = read.value
  const folder = dirname(resolve(file))
  const filled = fillReferences(document, folder, environment, sources)
  const named = namedIn(document, filled, folder)
  const parsed = parseDocumentAs(document, configSchema, filled.value)
  const found = faultsFound(document, (report) => {
    if (parsed.ok) {
      checkListeners(parsed.value, report)
      checkMounts(parsed.value, report)
      checkCookies(parsed.value, report)
    }
    checkHeaders(filled.value, report)
  })
  // A value with a reference that cannot be filled in was not checked: an error about it would only repeat the first one.
  const unfilled = new Set(filled.faults.map(({ path }) => path))
  const others = [...(parsed.ok ? [] : parsed.faults), ...found].filter(({ path }) => !unfilled.has(path))
  const faults = inOrder([...filled.faults, ...others])
  if (!parsed.ok || faults.length > 0) return { ok: false, faults, named }
  const warnings = faultsFound(document, (warn) => checkForWarnings(parsed.value, filled, warn))
  const written = withoutPlainSecrets(withoutAddresses(document.value))
  const config = resolvePaths(placeDataFiles(parsed.value, filled.value, environment), folder)
  const value = { config, isStorePlaced: isStorePlaced(filled.value), warnings: inOrder(warnings), written }
  return { ok: true, value, named }
}

/** A running gateway is found by the addresses of its listeners, so they need not be compared. */
function withoutAddresses(written: unknown): unknown {
  if (typeof written !== 'object' || written === null) return written
  const ofListener = (value: unknown): unknown =>
    typeof value === 'object' && value !== null ? { ...value, host: undefined, port: undefined } : value
  const listeners = ['listen', 'health', 'admin']
  return Object.fromEntries(
    Object.entries(written).map(([key, value]) => [key, listeners.includes(key) ? ofListener(value) : value]),
  )
}

function namedIn(document: SourceDocument, { value, secrets }: Filled, folder: string): Named {
  const policyAt = (pointer: string): PolicyFile | null => {
    const reference = valueAt(value, pointer)
    const isValid = typeof reference === 'string' && reference !== '' && policyReferenceFault(reference) === null
    return isValid ? policyFile(reference, folder) : null
  }
  const mode = valueAt(value, '/authentication/mode')
  return {
    policy: policyAt('/policy') ?? DEFAULT_POLICY,
    shadowPolicy: policyAt('/shadowPolicy'),
    places: { policy: placeIn(document, ['policy']), shadowPolicy: placeIn(document, ['shadowPolicy']) },
    surroundings: {
      issuers: keysOf(valueAt(value, '/authentication/issuers')),
      forwardHeaders: itemsOf(valueAt(value, '/forwardHeaders')).filter(isText),
      apis: apisIn(value),
      mode: mode === 'optional' || mode === 'off' ? mode : 'required',
    },
    secrets,
  }
}

/** The kinds of the upstreams as written, so that a policy is checked beside other errors. */
function apisIn(written: unknown): readonly UpstreamApi[] {
  const apis = placesIn(written).flatMap(([section = '', key]): readonly UpstreamApi[] => {
    if (section === 'agents') return ['agent']
    const one: unknown = valueAt(written, key === undefined ? `/${section}` : `/${section}/${key}`)
    if (one === undefined) return []
    return [valueAt(one, '/kind') === 'langgraph' ? 'langgraph' : 'runtime']
  })
  return [...new Set(apis)]
}

/** Checks header names in the text as written, so that other errors don't hide theirs. */
function checkHeaders(written: unknown, report: Report): void {
  const set = placesIn(written).map((place) => ({ place, names: keysOf(valueAt(written, `/${place.join('/')}/headers`)) }))
  const server = set.flatMap(({ names }) => names)
  const identity = identityNames(written)
  const hint = 'remove it'
  const identityFault = (name: string): string | null => (identity.includes(name.toLowerCase()) ? 'is written by identity' : null)
  for (const { place, names } of set) {
    for (const [at, name] of names.entries()) {
      if (names.findIndex((other) => other.toLowerCase() === name.toLowerCase()) < at) {
        report([...place, 'headers', name], 'is set twice', 'header names know no case')
      }
    }
    for (const name of names) {
      const fault = settingFault(name) ?? identityFault(name)
      if (fault !== null) report([...place, 'headers', name], fault, hint)
    }
  }
  for (const [at, name] of itemsOf(valueAt(written, '/forwardHeaders')).entries()) {
    if (!isText(name)) continue
    const fault = forwardingFault(name, server) ?? identityFault(name)
    if (fault !== null) report(['forwardHeaders', at], `${name} ${fault}`, hint)
  }
}

function placesIn(written: unknown): readonly (readonly string[])[] {
  const several = ['upstreams', 'agents'].flatMap((name) => keysOf(valueAt(written, `/${name}`)).map((key) => [name, key]))
  return [['upstream'], ...several]
}

function identityNames(written: unknown): readonly string[] {
  const headers: unknown = valueAt(written, '/identity/headers')
  const assertion: unknown = valueAt(written, '/identity/assertion')
  const names = typeof headers === 'object' && headers !== null ? Object.values(headers) : []
  if (typeof assertion === 'object' && assertion !== null) {
    names.push('header' in assertion ? assertion.header : ASSERTION_HEADER)
    if ('replaceAuthorization' in assertion && assertion.replaceAuthorization === true) names.push('authorization')
  }
  return names.filter(isText).map((name) => name.toLowerCase())
}

function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function keysOf(value: unknown): readonly string[] {
  return typeof value === 'object' && value !== null ? Object.keys(value) : []
}

function resolvePaths(config: Config, folder: string): Config {
  const path = (relative: string): string => resolve(folder, relative)
  const at = <Value extends object>(value: Value, keys: readonly (keyof Value)[]): Value => {
    const named = Object.entries(value).filter(([key]) => keys.some((other) => other === key))
    return { ...value, ...Object.fromEntries(named.map(([key, one]) => [key, typeof one === 'string' ? path(one) : one])) }
  }
  const each = <Value extends object>(several: Readonly<Record<string, Value>>, keys: readonly (keyof Value)[]) =>
    Object.fromEntries(Object.entries(several).map(([key, one]) => [key, at(one, keys)]))
  const listenerOf = ({ tls, ...listen }: Config['listen']): Config['listen'] => {
    if (tls === undefined) return listen
    const { clientCertificates } = tls
    const ofClients = clientCertificates === undefined ? {} : { clientCertificates: at(clientCertificates, ['ca']) }
    return { ...listen, tls: { ...at(tls, ['certificateFile', 'keyFile']), ...ofClients } }
  }
  const reached = <Value extends Pick<NonNullable<Config['upstream']>, 'ca' | 'tls'>>(one: Value): Value => ({
    ...at(one, ['ca']),
    ...(one.tls === undefined ? {} : { tls: at(one.tls, ['ca', 'certificateFile', 'keyFile']) }),
  })
  const { policy, shadowPolicy, upstream, upstreams, agents, authentication, ownership, admin, identity, audit } = config
  const { assertion } = identity
  const store = storeOf(ownership)
  return {
    ...config,
    ...(policy === undefined ? {} : { policy: policyFile(policy, folder).path }),
    ...(shadowPolicy === undefined ? {} : { shadowPolicy: policyFile(shadowPolicy, folder).path }),
    listen: listenerOf(config.listen),
    ...(upstream === undefined ? {} : { upstream: reached(upstream) }),
    upstreams: Object.fromEntries(Object.entries(upstreams).map(([key, one]) => [key, reached(one)])),
    agents: Object.fromEntries(Object.entries(agents).map(([key, one]) => [key, reached(one)])),
    authentication: {
      ...authentication,
      issuers: each(authentication.issuers, ['publicKeyFile', 'secretFile', 'ca', 'bearerTokenFile']),
    },
    ownership: {
      ...ownership,
      ...(store.kind === 'sqlite' ? { store: `sqlite:${path(store.file)}` } : {}),
      ...(ownership.postgres === undefined ? {} : { postgres: at(ownership.postgres, ['ca']) }),
    },
    ...(admin === undefined ? {} : { admin: at(admin, ['credentialFile']) }),
    ...(assertion === undefined
      ? {}
      : { identity: { ...identity, assertion: { ...assertion, keyFiles: assertion.keyFiles.map(path) } } }),
    audit: at(audit, ['file']),
  }
}

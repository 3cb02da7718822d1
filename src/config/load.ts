/** Loads a configuration: reads it, fills the secrets in, checks it, resolves the paths. Every error is reported at once. */
import { dirname, resolve } from 'node:path'
import { forwardingFault, settingFault } from '../core/wire/headers.ts'
import { valueAt } from '../core/json/pointer.ts'
import {
  faultAt,
  parseDocumentAs,
  placeIn,
  readDocument,
  type Outcome,
  type Place,
  type SourceDocument,
} from '../document/document.ts'
import type { Fault } from '../document/fault.ts'
import { listenerFaults } from './listeners.ts'
import { mountFaults } from './mount-faults.ts'
import { storeOf } from './store-place.ts'
import { configSchema, type Config } from './schema.ts'
import { fillReferences } from './secrets.ts'
import { warningsOf } from './warnings.ts'

export interface LoadedConfig {
  readonly config: Config
  readonly warnings: readonly Fault[]
}

export function loadConfig(file: string, environment: NodeJS.ProcessEnv): Outcome<LoadedConfig> {
  const read = readDocument(file)
  if (!read.ok) return read
  const document = read.value
  const folder = dirname(resolve(file))
  const filled = fillReferences(document, folder, environment)
  const parsed = parseDocumentAs(document, configSchema, filled.value)
  const faults = [
    ...filled.faults,
    ...(parsed.ok ? [...listenerFaults(document, parsed.value), ...mountFaults(document, parsed.value)] : parsed.faults),
    ...headerFaults(document, filled.value),
  ]
  if (!parsed.ok || faults.length > 0) return { ok: false, faults }
  return {
    ok: true,
    value: { config: resolvePaths(parsed.value, folder), warnings: warningsOf(document, parsed.value, filled.referenced) },
  }
}

/** Checks header names in the text as written, so that other errors don't hide theirs. */
function headerFaults(document: SourceDocument, written: unknown): readonly Fault[] {
  const set = placesIn(written).map((place) => ({ place, names: keysOf(valueAt(written, `/${place.join('/')}/headers`)) }))
  const server = set.flatMap(({ names }) => names)
  const told = identityNames(written)
  const forward: unknown = valueAt(written, '/forwardHeaders')
  return [
    ...set.flatMap(({ place, names }) => {
      const twice = names.filter((name, at) => names.findIndex((other) => other.toLowerCase() === name.toLowerCase()) < at)
      return [
        ...twice.map((name) => faultAt(document, [...place, 'headers', name], 'is set twice', 'header names know no case')),
        ...names.flatMap((name) => {
          const fault = settingFault(name) ?? (told.includes(name.toLowerCase()) ? 'is written by identity' : null)
          return fault === null ? [] : [faultAt(document, [...place, 'headers', name], fault, 'take it out')]
        }),
      ]
    }),
    ...(Array.isArray(forward) ? forward : []).flatMap((name: unknown, at) => {
      if (typeof name !== 'string') return []
      const fault = forwardingFault(name, server) ?? (told.includes(name.toLowerCase()) ? 'is written by identity' : null)
      return fault === null ? [] : [faultAt(document, ['forwardHeaders', at], `${name} ${fault}`, 'take it out')]
    }),
  ]
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
    names.push('header' in assertion ? assertion.header : 'x-threadwarden-assertion')
    if ('replaceAuthorization' in assertion && assertion.replaceAuthorization === true) names.push('authorization')
  }
  return names.filter((name): name is string => typeof name === 'string').map((name) => name.toLowerCase())
}

function keysOf(value: unknown): readonly string[] {
  return typeof value === 'object' && value !== null ? Object.keys(value) : []
}

export interface Named {
  /** Undefined for the shipped policy. */
  readonly policy: string | undefined
  readonly shadowPolicy: string | undefined
  readonly places: { readonly policy: Place; readonly shadowPolicy: Place }
  readonly surroundings: {
    readonly issuers: readonly string[]
    readonly forwardHeaders: readonly string[]
    readonly mode: 'required' | 'optional' | 'off'
  }
  readonly files: readonly string[]
  readonly materials: readonly string[]
  readonly secrets: readonly string[]
}

/**
 * Reads the named files, even of an invalid configuration.
 * @returns null if the file can't be read
 */
export function namedBy(file: string, environment: NodeJS.ProcessEnv): Named | null {
  const read = readDocument(file)
  if (!read.ok) return null
  const folder = dirname(resolve(file))
  const { value, files, secrets } = fillReferences(read.value, folder, environment)
  const pathsAt = (pointer: string): readonly string[] => {
    const named = valueAt(value, pointer)
    const paths: readonly unknown[] = Array.isArray(named) ? named : [named]
    return paths.flatMap((path) => (typeof path === 'string' && path !== '' ? [resolve(folder, path)] : []))
  }
  const headers = valueAt(value, '/forwardHeaders')
  const mode = valueAt(value, '/authentication/mode')
  const issuers = keysOf(valueAt(value, '/authentication/issuers'))
  const ofIssuers = issuers.flatMap((key) =>
    // Not bearerTokenFile: it is read with each fetch, and may rotate at any time.
    ['publicKeyFile', 'secretFile', 'ca'].flatMap((name) => pathsAt(`/authentication/issuers/${key}/${name}`)),
  )
  const digests = [
    ...ofIssuers,
    ...placesIn(value).flatMap((place) => pathsAt(`/${place.join('/')}/ca`)),
    ...pathsAt('/ownership/postgres/ca'),
    ...pathsAt('/identity/assertion/keyFiles'),
  ]
  const [policy] = pathsAt('/policy')
  const [shadowPolicy] = pathsAt('/shadowPolicy')
  return {
    policy,
    shadowPolicy,
    places: { policy: placeIn(read.value, ['policy']), shadowPolicy: placeIn(read.value, ['shadowPolicy']) },
    surroundings: {
      issuers,
      forwardHeaders: Array.isArray(headers) ? headers.filter((name): name is string => typeof name === 'string') : [],
      mode: mode === 'optional' || mode === 'off' ? mode : 'required',
    },
    files: [resolve(file), ...[policy, shadowPolicy].filter((path) => path !== undefined), ...files, ...digests],
    materials: digests,
    secrets,
  }
}

function resolvePaths(config: Config, folder: string): Config {
  const path = (relative: string): string => resolve(folder, relative)
  const issuers = Object.entries(config.authentication.issuers).map(([key, issuer]) => [
    key,
    {
      ...issuer,
      ...(issuer.publicKeyFile === undefined ? {} : { publicKeyFile: path(issuer.publicKeyFile) }),
      ...(issuer.secretFile === undefined ? {} : { secretFile: path(issuer.secretFile) }),
      ...(issuer.ca === undefined ? {} : { ca: path(issuer.ca) }),
      ...(issuer.bearerTokenFile === undefined ? {} : { bearerTokenFile: path(issuer.bearerTokenFile) }),
    },
  ])
  const at = <Reached extends { readonly ca?: string | undefined }>(one: Reached): Reached =>
    one.ca === undefined ? one : { ...one, ca: path(one.ca) }
  const each = <Reached extends { readonly ca?: string | undefined }>(several: Readonly<Record<string, Reached>>) =>
    Object.fromEntries(Object.entries(several).map(([key, one]) => [key, at(one)]))
  const { admin } = config
  const { assertion } = config.identity
  const credentialFile = admin?.credentialFile
  return {
    ...config,
    upstream: config.upstream === undefined ? undefined : at(config.upstream),
    upstreams: each(config.upstreams),
    agents: each(config.agents),
    authentication: { ...config.authentication, issuers: Object.fromEntries(issuers) as Config['authentication']['issuers'] },
    ownership: { ...config.ownership, ...storeAt(config.ownership, path) },
    ...(admin === undefined || credentialFile === undefined ? {} : { admin: { ...admin, credentialFile: path(credentialFile) } }),
    ...(assertion === undefined
      ? {}
      : { identity: { ...config.identity, assertion: { ...assertion, keyFiles: assertion.keyFiles.map(path) } } }),
    ...(config.policy === undefined ? {} : { policy: path(config.policy) }),
    ...(config.shadowPolicy === undefined ? {} : { shadowPolicy: path(config.shadowPolicy) }),
    audit: { ...config.audit, file: path(config.audit.file) },
  }
}

function storeAt(
  ownership: Config['ownership'],
  path: (relative: string) => string,
): Pick<Config['ownership'], 'store' | 'postgres'> {
  const { store, postgres } = ownership
  const named = storeOf(ownership)
  if (named.kind === 'sqlite') return { store: `sqlite:${path(named.file)}` }
  return { store, ...(postgres?.ca === undefined ? {} : { postgres: { ...postgres, ca: path(postgres.ca) } }) }
}

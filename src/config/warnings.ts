/** Finds warnings for a configuration that is valid. */
import { passesAnyway } from '../core/wire/headers.ts'
import type { UpstreamApi } from '../core/route/all-routes.ts'
import { valueAt } from '../core/json/pointer.ts'
import type { Report } from '../document/document.ts'
import { isLoopbackHost } from '../core/wire/addresses.ts'
import { besideEachOther } from './mount-faults.ts'
import { mountsOf, scopeName } from './mounts.ts'
import { hasPasswordInStore, isLocalServer, storeOf } from './store-place.ts'
import type { Config } from './schema.ts'
import type { Filled } from './secrets.ts'
import { checkForUnused } from './unused-keys.ts'

type Written = Pick<Filled, 'value' | 'referenced'>

const SECRET_NAME = /auth|token|secret|key|password|credential/i

/** Claims that name an application, a tenant or the issuer itself: all users of it have the same value. */
// oxfmt-ignore
const SHARED_CLAIMS = new Set([
  '/iss', '/aud', '/azp', '/client_id', '/appid', '/cid', '/scope', '/scp', '/tid', '/org_id', '/hd', '/idp', '/acr', '/typ', '/ver',
])

/** Claims whose values may later be given to another user (OpenID Connect Core 1.0 §5.7: only `iss` and `sub` are stable). */
// oxfmt-ignore
const PASSED_ON_CLAIMS = new Set([
  '/email', '/preferred_username', '/upn', '/unique_name', '/username', '/cognito:username', '/name', '/nickname', '/phone_number',
])

const CHECKING: Readonly<Record<UpstreamApi, string>> = { runtime: 'runtime', agent: 'agent', langgraph: 'server' }

/** @param written the configuration as written, with its references filled in, and their paths */
export function checkForWarnings(config: Config, { value: written, referenced }: Written, warn: Report): void {
  const mounts = mountsOf(config)
  checkForUnused(config, (path) => valueAt(written, `/${path.join('/')}`) !== undefined, warn)
  for (const { place, api, headers } of mounts) {
    for (const name of Object.keys(headers)) {
      const path = [...place, 'headers', name]
      if (api === 'langgraph' && isKeptWithThreads(name)) {
        warn(path, 'can be read by callers: the server keeps it with threads and runs', 'send a secret as authorization')
      }
      if (SECRET_NAME.test(name) && !referenced.has(path.join('.'))) {
        warn(path, 'looks like a secret in plain text', 'write "${file:/run/secrets/…}" or "${env:…}"')
      }
    }
  }
  for (const [one, other] of besideEachOther(mounts)) {
    warn(
      one.place,
      `is on the host and port of ${other.place.join('.')}: if both serve the same threads, each ignores the owners that the other recorded`,
      `write scope: ${scopeName(other.scope)} if they do, or scope: ${one.key} if they do not; threadwarden doctor asks them`,
    )
  }
  const { admin } = config
  if (admin?.credential !== undefined && !referenced.has('admin.credential')) {
    warn(['admin', 'credential'], 'is a secret in plain text', 'write "${file:/run/secrets/…}" or "${env:…}"')
  }
  if (admin !== undefined && !isLoopbackHost(admin.host)) {
    warn(
      ['admin', 'host'],
      'is reachable from other machines over plain HTTP: anyone on the network path can read the credential',
    )
  }
  for (const [at, name] of config.forwardHeaders.entries()) {
    if (passesAnyway(name)) warn(['forwardHeaders', at], `${name} is forwarded by default`)
    else if (/^x-/i.test(name)) {
      warn(['forwardHeaders', at], `agents may read ${name} as identity, but callers choose its value`)
    }
  }
  for (const { place, url, headers, api } of mounts) {
    if (isLoopbackHost(new URL(url).hostname) || Object.keys(headers).length > 0) continue
    warn(
      [...place, 'url'],
      'is on another machine: a client that can connect to it bypasses the gateway',
      `allow only the gateway by network policy, and send a secret in ${place.join('.')}.headers that the ${CHECKING[api]} checks`,
    )
  }
  const { assertion } = config.identity
  if (assertion !== undefined) {
    if (!assertion.replaceAuthorization && mounts.some(({ api }) => api === 'langgraph')) {
      warn(
        ['identity', 'assertion'],
        'can be read by every reader of a thread: a LangGraph server keeps it with threads and runs',
        'write replaceAuthorization: true',
      )
    }
    const audiences = mounts.map(({ assertionAudience = assertion.audience }) => assertionAudience)
    for (const [at, { place }] of mounts.entries()) {
      const same = mounts[audiences.indexOf(audiences[at] ?? '')]
      if (same === undefined || same.place === place) continue
      warn(
        [...place, 'assertionAudience'],
        `is also the audience of ${same.place.join('.')}: each of the two can replay an assertion at the other`,
        'remove it, or give each upstream its own',
      )
    }
  }
  const { ownership } = config
  if (hasPasswordInStore(ownership) && !referenced.has('ownership.store')) {
    warn(
      ['ownership', 'store'],
      'has a secret in plain text',
      'write it to ownership.postgres.password as "${file:/run/secrets/…}"',
    )
  }
  if (ownership.postgres?.password !== undefined && !referenced.has('ownership.postgres.password')) {
    warn(['ownership', 'postgres', 'password'], 'is a secret in plain text', 'write "${file:/run/secrets/…}" or "${env:…}"')
  }
  const store = storeOf(ownership)
  if (config.limits.tokens.length > 0 && store.kind !== 'postgres') {
    warn(
      ['limits', 'tokens'],
      'is counted in memory: a restart of the gateway starts all budgets from zero',
      'use PostgreSQL as ownership.store, or short windows',
    )
  }
  if (store.kind === 'postgres' && store.settings.tls === 'off' && !isLocalServer(store.settings)) {
    warn(
      ['ownership', 'postgres', 'tls'],
      'off: anyone on the network path to the server can read and change the owners of threads',
      'write tls: verify',
    )
  }
  if (config.enforcement === 'observe') {
    warn(['enforcement'], 'observe: threads are not protected; the gateway permits requests that only ownership would refuse')
    if (config.ownership.lists !== 'upstream') {
      warn(['ownership', 'lists'], `${config.ownership.lists} has no effect under observe: callers get the upstream's list`)
    }
  }
  if (config.authentication.mode === 'off') {
    warn(['authentication', 'mode'], 'off: no caller is authenticated, all callers are one user')
  }
  const { cors } = config
  const issuers = Object.entries(config.authentication.issuers)
  if (cors.origins.length > 0 && !cors.credentials && issuers.some(([, { credential }]) => credential.cookie !== undefined)) {
    warn(
      ['cors', 'credentials'],
      'false: pages of cors.origins cannot use the credential cookie',
      'write credentials: true if they should; they must be of the same site as the gateway',
    )
  }
  for (const [key, issuer] of issuers) {
    const at = ['authentication', 'issuers', key]
    if (issuer.insecureHttp) {
      warn([...at, 'insecureHttp'], 'anyone on the network path to the issuer can forge tokens for every user')
    }
    if (issuer.introspection !== undefined && !referenced.has([...at, 'introspection', 'clientSecret'].join('.'))) {
      warn([...at, 'introspection', 'clientSecret'], 'is a secret in plain text', 'write "${file:/run/secrets/…}" or "${env:…}"')
    }
    const { id } = issuer.claims
    const path = [...at, 'claims', 'id']
    if (SHARED_CLAIMS.has(id) || id === issuer.audienceClaim) {
      warn(path, `${id} has one value for all users of an application: they would all be one user`, 'write /sub')
    } else if (PASSED_ON_CLAIMS.has(id)) {
      warn(path, `${id} may be reassigned to another person later, who then gets the threads`, 'write /sub')
    }
  }
}

/** A LangGraph server copies these headers into the configuration of a run (langgraph-behaviour.md, "Headers"). */
function isKeptWithThreads(name: string): boolean {
  const lower = name.toLowerCase()
  return lower.startsWith('x-') && !['x-api-key', 'x-tenant-id', 'x-service-key'].includes(lower)
}

/** An issuer's keys, given or fetched with `fetch`. */
import { isFetchable } from '../../core/wire/addresses.ts'
import type { PublicKeyAlgorithm } from '../../jwt/algorithms.ts'
import { FETCH_TIMEOUT_MS, MAX_DOCUMENT_BYTES, readDocument, type DocumentSource } from '../../jwt/document.ts'
import { keyFromJwk, keyFromPem, type VerificationKey, type VerifierRules } from '../../jwt/key.ts'
import { fixedKeys, remoteKeys, type KeySource, type RemoteKeys } from '../../jwt/key-source.ts'

export type Fetch = (
  url: string,
  init: { readonly headers: Record<string, string>; readonly redirect: 'error'; readonly signal: AbortSignal },
) => Promise<Response>

export interface AgentKeys {
  readonly source: KeySource
  readonly lastFailure: () => unknown
}

export interface KeyRules extends VerifierRules {
  readonly algorithms: readonly PublicKeyAlgorithm[]
}

const CACHE_FOR_MS = 600_000
const STALE_IF_ERROR_MS = 86_400_000

/** @returns null unless each is a public key that fits one of the algorithms */
export function givenKeys(keys: readonly (object | string)[], rules: KeyRules): AgentKeys | null {
  const read = keys.map((key) => givenKey(key, rules)).filter((key) => key !== null)
  if (read.length === 0 || read.length < keys.length) return null
  return { source: fixedKeys(read), lastFailure: () => undefined }
}

function givenKey(key: object | string, rules: KeyRules): VerificationKey | null {
  if (typeof key !== 'string') return keyFromJwk(key, rules.algorithms, rules)
  try {
    return keyFromPem(key, rules.algorithms, rules)
  } catch {
    return null
  }
}

export function fetchedKeys(at: RemoteKeys['at'], rules: KeyRules, fetch: Fetch): AgentKeys {
  let failure: unknown
  const source = remoteKeys({
    at,
    fetching: documentsBy(fetch),
    read: (jwk) => keyFromJwk(jwk, rules.algorithms, rules),
    cacheFor: CACHE_FOR_MS,
    staleIfError: STALE_IF_ERROR_MS,
    whenOld: 'wait',
    clock: () => Date.now(),
    onFailure: (_, cause) => {
      failure = cause
    },
  })
  return { source, lastFailure: () => failure }
}

function documentsBy(fetch: Fetch): DocumentSource {
  return {
    allowed: (uri) => isFetchable(uri),
    async get(uri) {
      const signal = AbortSignal.timeout(FETCH_TIMEOUT_MS)
      const answer = await fetch(uri, { headers: { accept: 'application/json' }, redirect: 'error', signal })
      if (answer.status !== 200) {
        await answer.body?.cancel()
        throw new Error(`${uri} answered ${answer.status}`)
      }
      return readDocument(uri, (answer.body ?? []) as AsyncIterable<Uint8Array>, MAX_DOCUMENT_BYTES)
    },
  }
}

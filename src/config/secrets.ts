/** Fills in `${env:NAME}` and `${file:/path}` in the strings of a configuration. */
import { normalize, resolve } from 'node:path'
import { faultAt, type SourceDocument } from '../document/document.ts'
import type { Fault } from '../document/fault.ts'
import { unreadable, type Sources } from '../document/sources.ts'

const REFERENCE = /\$\{([^}]*)\}/g

export interface Filled {
  readonly value: unknown
  readonly faults: readonly Fault[]
  readonly referenced: ReadonlySet<string>
  readonly secrets: readonly string[]
}

export function fillReferences(
  document: SourceDocument,
  folder: string,
  environment: NodeJS.ProcessEnv,
  sources: Sources,
): Filled {
  const faults: Fault[] = []
  const referenced = new Set<string>()
  const secrets = new Set<string>()
  const fill = (value: unknown, path: readonly PropertyKey[]): unknown => {
    if (typeof value === 'string') {
      return value.replace(REFERENCE, (_whole, reference: string) => {
        referenced.add(path.map(String).join('.'))
        const found = lookUp(reference, folder, environment, sources)
        if ('fault' in found) faults.push(faultAt(document, path, found.fault, found.hint))
        if ('text' in found) secrets.add(found.text)
        return 'text' in found ? found.text : ''
      })
    }
    if (Array.isArray(value)) return value.map((item, at) => fill(item, [...path, at]))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, fill(inner, [...path, key])]))
  }
  return { value: fill(document.value, []), faults, referenced, secrets: [...secrets] }
}

/** Shorter values are not treated as secrets: they may be ordinary words of a message. */
const LEAST_SECRET = 4

/** Removes values of references from errors, also where a path was made of them. */
export function withoutSecrets(faults: readonly Fault[], secrets: readonly string[]): readonly Fault[] {
  const forms = secrets
    .flatMap((secret) => [secret, normalize(secret), resolve('/', secret).slice(1), JSON.stringify(secret).slice(1, -1)])
    .filter((form) => form.length >= LEAST_SECRET)
    .sort((one, other) => other.length - one.length)
  const clean = (text: string): string => forms.reduce((rest, form) => rest.replaceAll(form, '…'), text)
  return faults.map((fault) => ({
    ...fault,
    file: clean(fault.file),
    path: clean(fault.path),
    message: clean(fault.message),
    ...(fault.hint === undefined ? {} : { hint: clean(fault.hint) }),
  }))
}

const SECRET_KEYS: ReadonlySet<string> = new Set(['credential', 'clientSecret', 'password'])

/** Leaves out the values of keys that are meant for secrets: header values, credentials and passwords. */
export function withoutPlainSecrets(written: unknown): unknown {
  if (Array.isArray(written)) return written.map(withoutPlainSecrets)
  if (typeof written !== 'object' || written === null) return written
  const kept = Object.entries(written).map(([key, value]): readonly [string, unknown] => {
    if (SECRET_KEYS.has(key)) return [key, null]
    if (key === 'headers' && typeof value === 'object' && value !== null) return [key, Object.keys(value as object)]
    if (key === 'store' && typeof value === 'string') return [key, value.replace(/:\/\/[^@]*@/, '://')]
    return [key, withoutPlainSecrets(value)]
  })
  return Object.fromEntries(kept)
}

function lookUp(
  reference: string,
  folder: string,
  environment: NodeJS.ProcessEnv,
  sources: Sources,
): { readonly text: string } | { readonly fault: string; readonly hint: string } {
  const colon = reference.indexOf(':')
  const kind = reference.slice(0, colon)
  const name = reference.slice(colon + 1)
  if (kind === 'env') {
    const text = Object.hasOwn(environment, name) ? environment[name] : undefined
    return text === undefined ? { fault: `the environment has no ${name}`, hint: 'set it, or remove the reference' } : { text }
  }
  if (kind === 'file') {
    const source = sources.read(resolve(folder, name))
    if (!('error' in source)) return { text: source.bytes.toString('utf8').replace(/\r?\n$/, '') }
    const { message, hint } = unreadable(source.error)
    return { fault: `the file ${name} ${message}`, hint }
  }
  return { fault: `\${${reference}} is not a reference`, hint: 'write ${env:NAME} or ${file:/path}' }
}

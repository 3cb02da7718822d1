/** Reads the options of `threadwarden init`. */
import { dirname, isAbsolute, relative, resolve, sep } from 'node:path'
import { certificatesIn } from '../../tls/certificates.ts'
import { hasPasswordInStore } from '../../config/store-place.ts'
import { duration } from '../../document/quantities.ts'
import { UNKNOWN_THREAD, type UnknownThread, type Wishes } from '../../tools/init/configuration.ts'
import type { IssuerPlace } from '../../tools/init/issuer.ts'
import type { UpstreamPlace } from '../../tools/init/upstream.ts'
import { flag, UsageError, value, type Values } from '../command.ts'
import { readInput } from '../input-files.ts'

export const STDOUT = '-'

export const DEFAULT_ISSUER_ID = 'corp'

export const OPTIONS = {
  upstream: value('URL', 'the runtime with its base path, such as http://127.0.0.1:4000/api/copilotkit; or the agent'),
  agent: value('ID', 'the upstream is an AG-UI agent without a runtime, with this id'),
  'upstream-header': {
    ...value('NAME=FILE', 'a header for every upstream request, with its value in a file; may be repeated'),
    multiple: true,
  },
  'upstream-ca': value('FILE', 'the private certificate authority of the upstream, in PEM'),
  issuer: value('URL', 'the issuer of the tokens, as in their iss'),
  'issuer-id': value('ID', `your id for the issuer, part of every user id (default: ${DEFAULT_ISSUER_ID})`),
  'issuer-ca': value('FILE', 'the private certificate authority of the issuer, in PEM'),
  'jwks-uri': value('URL', 'the key set of an issuer without OpenID Connect discovery'),
  audience: { ...value('NAME', 'the aud of the tokens; may be repeated (default: agent-chat)'), multiple: true },
  origin: { ...value('ORIGIN', 'the origin of a web page that calls the gateway; may be repeated'), multiple: true },
  store: value('STORE', 'sqlite: and a path, or postgres://user@host/database (default: a SQLite file)'),
  'unknown-thread': value('VALUE', 'claim, verify or deny (default: what fits the upstream)'),
  out: { ...value('FILE', 'the file to write; - is stdout'), default: 'threadwarden.yaml' },
  force: flag('replaces the file if it exists'),
  offline: flag('asks neither the upstream nor the issuer, and writes assumptions'),
  timeout: { ...value('TIME', 'the time limit of one question to the upstream'), default: '5s' },
} as const

/** The issuer id and the key of an agent (docs/reference/configuration.md). */
const KEY = /^[a-z0-9-]+$/

interface Header {
  readonly name: string
  readonly file: string
  readonly value: string
}

interface Authority {
  readonly file: string
  readonly pem: string
}

export interface UpstreamUrl {
  readonly origin: string
  readonly path: string
}

/** What the options say; null or empty for what they do not say. */
export interface Request {
  readonly upstream: UpstreamUrl | null
  readonly agentId: string | null
  readonly headers: readonly Header[]
  readonly upstreamCa: Authority | null
  readonly issuer: string | null
  readonly issuerId: string | null
  readonly issuerCa: Authority | null
  readonly jwksUri: string | null
  readonly audiences: readonly string[]
  readonly origins: readonly string[]
  readonly store: string | null
  readonly unknownThread: UnknownThread | null
  readonly out: string
  readonly timeout: number
}

export interface CompleteRequest extends Request {
  readonly upstream: UpstreamUrl
  readonly issuer: string
}

export function isComplete(request: Request): request is CompleteRequest {
  return request.upstream !== null && request.issuer !== null
}

/** @throws UsageError */
export function readRequest(options: Values<typeof OPTIONS>): Request {
  const { upstream, agent, issuer, store, audience = [], origin = [], out, timeout } = options
  const [issuerId, jwksUri, unknownThread] = [options['issuer-id'], options['jwks-uri'], options['unknown-thread']]
  const limit = duration.safeParse(timeout)
  if (!limit.success || limit.data === 0) throw new UsageError(`--timeout ${timeout} is not a duration: write 500ms, 10s or 1m`)
  if (out === '') throw new UsageError('--out must name a file')
  if (store !== undefined && hasPasswordInStore({ store })) {
    throw new UsageError(
      '--store contains a password: leave it out, and add ownership.postgres.password as "${file:…}" to the file',
    )
  }
  const unknown = unknownThread === undefined ? null : oneOf('--unknown-thread', unknownThread, UNKNOWN_THREAD)
  if (unknown === 'verify' && agent !== undefined) throw new UsageError('--unknown-thread verify does not work with --agent')
  return {
    upstream: upstream === undefined ? null : readUpstream(upstream),
    agentId: agent === undefined ? null : readKey('--agent', agent),
    headers: (options['upstream-header'] ?? []).map(readHeader),
    upstreamCa: readAuthority('--upstream-ca', options['upstream-ca']),
    issuer: issuer === undefined ? null : readIssuer(issuer),
    issuerId: issuerId === undefined ? null : readKey('--issuer-id', issuerId),
    issuerCa: readAuthority('--issuer-ca', options['issuer-ca']),
    jwksUri: jwksUri === undefined ? null : readUrl('--jwks-uri', jwksUri).href,
    audiences: audience.map((one) => readPlain('--audience', one)),
    origins: origin.map((one) => readPlain('--origin', one)),
    store: store === undefined ? null : readPlain('--store', store),
    unknownThread: unknown,
    out,
    timeout: limit.data,
  }
}

/** @throws UsageError */
export function readUpstream(text: string): UpstreamUrl {
  const url = readUrl('--upstream', text)
  if (url.search !== '' || url.hash !== '')
    throw new UsageError('--upstream has a query or a fragment: it must end with the path')
  return { origin: url.origin, path: url.pathname }
}

/** The address of the metadata is accepted, too. @throws UsageError */
export function readIssuer(text: string): string {
  readUrl('--issuer', text)
  return readPlain('--issuer', text.replace(/\/\.well-known\/openid-configuration$/, ''))
}

/** @throws UsageError */
export function readKey(option: string, text: string): string {
  if (!KEY.test(text)) throw new UsageError(`${option} must consist of a-z, 0-9 and -`)
  return text
}

/** A configuration would fill in what the operator did not mean as a reference. @throws UsageError */
export function readPlain(option: string, text: string): string {
  if (text.trim() === '') throw new UsageError(`${option} is empty`)
  if (text.includes('${')) throw new UsageError(`${option} contains a reference \${…}: add it to the file afterwards`)
  return text
}

function readUrl(option: string, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new UsageError(`${option} must be a URL that begins with http:// or https://`)
  if (url.username !== '' || url.password !== '')
    throw new UsageError(`${option} contains a user name or a password: leave it out`)
  return url
}

function oneOf<const T extends string>(option: string, text: string, values: readonly T[]): T {
  const found = values.find((one) => one === text)
  if (found === undefined) throw new UsageError(`${option} must be one of: ${values.join(', ')}`)
  return found
}

const MAX_HEADER_BYTES = 16 * 1024
const MAX_AUTHORITY_BYTES = 1024 * 1024

/** No message repeats the value of the header. */
function readHeader(text: string): Header {
  const [, name = '', file = ''] = /^([!#$%&'*+\-.^`|~0-9A-Za-z]+)=(.+)$/.exec(text) ?? []
  if (name === '')
    throw new UsageError('--upstream-header must be a header name, = and the name of a file: x-service-token=token.txt')
  if (file.includes('}')) throw new UsageError(`--upstream-header ${name}: the name of its file contains }`)
  const content = readInput('--upstream-header', file, MAX_HEADER_BYTES)
    .toString('utf8')
    .replace(/\r?\n$/, '')
  if (!/^[\x20-\x7e]+$/.test(content))
    throw new UsageError(`--upstream-header ${file} must contain one line of ASCII, the value alone`)
  return { name: name.toLowerCase(), file, value: content }
}

function readAuthority(option: string, file: string | undefined): Authority | null {
  if (file === undefined) return null
  const pem = readInput(option, readPlain(option, file), MAX_AUTHORITY_BYTES).toString('utf8')
  try {
    certificatesIn(pem)
  } catch (error) {
    throw new UsageError(`${option} ${file} ${error instanceof Error ? error.message : String(error)}`)
  }
  return { file, pem }
}

export function upstreamPlace({
  upstream,
  agentId,
  headers,
  upstreamCa,
}: Request & Pick<CompleteRequest, 'upstream'>): UpstreamPlace {
  return {
    origin: upstream.origin,
    path: pathOf(upstream, agentId),
    agentId,
    headers: Object.fromEntries(headers.map(({ name, value }) => [name, value])),
    ca: upstreamCa?.pem,
  }
}

/** The slash at the end of an agent's path is part of it. A runtime has its routes below the path, such as /info. */
function pathOf({ path }: UpstreamUrl, agentId: string | null): string {
  return agentId === null ? path.replace(/\/(?:info\/?)?$/, '') : path
}

export function issuerPlace({ issuer, jwksUri, issuerCa }: Request & Pick<CompleteRequest, 'issuer'>): IssuerPlace {
  return { issuer, jwksUri, ca: issuerCa?.pem }
}

export function wishesOf(request: CompleteRequest): Wishes {
  const { upstream, agentId, headers, upstreamCa, issuerId, issuerCa, out, ...rest } = request
  const place = (file: string): string => fileFrom(out, file)
  return {
    ...rest,
    origin: upstream.origin,
    path: pathOf(upstream, agentId),
    agentId,
    upstreamHeaders: headers.map(({ name, file }) => [name, place(file)] as const),
    upstreamCa: upstreamCa === null ? null : place(upstreamCa.file),
    issuerId: issuerId ?? DEFAULT_ISSUER_ID,
    issuerCa: issuerCa === null ? null : place(issuerCa.file),
  }
}

/** Options name files from the working directory, a configuration from its own folder, which stdout does not have. */
function fileFrom(out: string, file: string): string {
  if (isAbsolute(file) || out === STDOUT) return resolve(file)
  const path = relative(dirname(resolve(out)), resolve(file))
  return path.startsWith('..') ? path : `.${sep}${path}`
}

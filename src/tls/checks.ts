/** Checks the TLS files that a configuration names, and lists the certificates whose end an operator has to know. */
import { mountsOf } from '../config/mounts.ts'
import type { Config } from '../config/schema.ts'
import { unreadable, type Sources } from '../document/sources.ts'
import {
  certificatesIn,
  checkAcceptable,
  checkPair,
  checkPrivateKey,
  UnusableFile,
  validityOf,
  validityWarning,
  type Validity,
} from './certificates.ts'

/** A certificate that the gateway presents: to callers, or to an upstream. */
export interface PresentedCertificate extends Validity {
  /** The settings that name it: `listen.tls`, `upstream.tls`, `agents.research.tls`. */
  readonly name: string
  readonly file: string
}

export interface TlsFinding {
  readonly path: string
  readonly message: string
  readonly hint?: string
}

interface Pair {
  readonly name: string
  readonly certificateFile: string
  readonly keyFile: string
}

function pairsOf(config: Config): readonly Pair[] {
  const { tls } = config.listen
  const ofUpstreams = mountsOf(config).flatMap(({ place, tls: { certificateFile, keyFile } }) =>
    certificateFile === undefined || keyFile === undefined
      ? []
      : [{ name: [...place, 'tls'].join('.'), certificateFile, keyFile }],
  )
  return [...(tls === undefined ? [] : [{ name: 'listen.tls', ...tls }]), ...ofUpstreams]
}

/** Each key that names a file of CA certificates. */
function authoritiesOf(config: Config): readonly (readonly [path: string, file: string])[] {
  const ofClients = config.listen.tls?.clientCertificates
  const ofUpstreams = mountsOf(config).flatMap(({ place, tls: { ca }, isCaInTls }) =>
    ca === undefined ? [] : [[[...place, ...(isCaInTls ? ['tls'] : []), 'ca'].join('.'), ca] as const],
  )
  return [...(ofClients === undefined ? [] : [['listen.tls.clientCertificates.ca', ofClients.ca] as const]), ...ofUpstreams]
}

export function tlsFaults(config: Config, sources: Sources): readonly TlsFinding[] {
  const faults: TlsFinding[] = []
  /** @returns the text of a file that passes the check; null after an error */
  const checked = (path: string, file: string, check: (text: string) => void): string | null => {
    try {
      const source = sources.read(file)
      if ('error' in source) {
        const { message, hint } = unreadable(source.error)
        throw new UnusableFile(message, hint)
      }
      const text = source.bytes.toString('utf8')
      check(text)
      return text
    } catch (error) {
      if (!(error instanceof UnusableFile)) throw error
      faults.push({ path, message: `${file} ${error.message}`, ...(error.hint === undefined ? {} : { hint: error.hint }) })
      return null
    }
  }
  for (const [path, file] of authoritiesOf(config)) checked(path, file, certificatesIn)
  for (const { name, certificateFile, keyFile } of pairsOf(config)) {
    const certificates = checked(`${name}.certificateFile`, certificateFile, certificatesIn)
    const key = checked(`${name}.keyFile`, keyFile, checkPrivateKey)
    if (certificates === null || key === null) continue
    const belongs = checked(`${name}.keyFile`, keyFile, (text) => checkPair(certificates, text, certificateFile))
    if (belongs !== null) checked(`${name}.certificateFile`, certificateFile, (text) => checkAcceptable(text, key))
  }
  return faults
}

/** @param config one without errors */
export function presentedCertificates(config: Config, sources: Sources): readonly PresentedCertificate[] {
  return pairsOf(config).map(({ name, certificateFile: file }) => ({ name, file, ...validityOf(sources.text(file)) }))
}

/** An expired certificate is no error: the gateway could not reload its policy, and some proxies in front do not verify it. */
export function certificateWarnings(certificates: readonly PresentedCertificate[], now: number): readonly TlsFinding[] {
  return certificates.flatMap(({ name, file, ...validity }) => {
    const warning = validityWarning(validity, now)
    return warning === null ? [] : [{ path: `${name}.certificateFile`, message: `${file} ${warning}`, hint: RENEW }]
  })
}

const RENEW = 'renew it, and replace both files: the gateway reloads them'

/** Reaches the public listener on this machine: with TLS, its certificate is that of the configuration, for whatever name. */
import { X509Certificate } from 'node:crypto'
import { connect } from 'node:tls'
import { Agent, type Dispatcher } from 'undici'
import type { Config } from '../../config/schema.ts'
import type { Sources } from '../../document/sources.ts'
import { certificatesIn, validityOf, validityWarning } from '../../tls/certificates.ts'
import { notChecked, ok, problem, warning } from './finding.ts'
import { absent } from './gateway.ts'
import { codeOf, listenerOrigin, PORT_ZERO } from './requests.ts'
import type { Check, Results, Subject } from './subject.ts'

export const CERTIFICATE_CHECK: Check = { name: 'gateway.certificate', run: presentsCertificate }

/** Trusts the configured certificate itself. Undefined for a listener without TLS. */
export function listenerDispatcher({ listen: { tls } }: Config, sources: Sources): Dispatcher | undefined {
  if (tls === undefined) return undefined
  const [leaf] = certificatesIn(sources.text(tls.certificateFile))
  const connecting = { ca: leaf.toString(), allowPartialTrustChain: true, checkServerIdentity: () => undefined }
  return new Agent({ allowH2: false, connect: connecting })
}

async function presentsCertificate({ config, sources, wishes, clock }: Subject, signal: AbortSignal): Promise<Results> {
  const { tls } = config.listen
  if (tls === undefined || wishes.url !== null) return []
  const origin = listenerOrigin(config)
  if (origin === null) return notChecked(PORT_ZERO)
  let presented: X509Certificate
  try {
    presented = await certificateAt(new URL(origin), signal)
  } catch (error) {
    const code = codeOf(error)
    if (!code.startsWith('ERR_SSL')) return absent(origin, code)
    return problem(
      `the TLS handshake with ${origin} fails (${code})`,
      'restart the gateway, if listen.tls is new; look in its log',
    )
  }
  const text = sources.text(tls.certificateFile)
  if (!presented.raw.equals(certificatesIn(text)[0].raw)) {
    return problem(
      `${origin} does not present the certificate in ${tls.certificateFile}`,
      'look in the log of the gateway for errors of the reload, and check that the two files of the pair belong together',
    )
  }
  const validity = validityOf(text)
  const due = validityWarning(validity, clock())
  if (due !== null) return warning(`the certificate of ${origin} ${due}`, 'renew it, and replace both files')
  return ok(`${origin} presents the configured certificate, valid until ${new Date(validity.until).toISOString()}`)
}

/** A listener that requires a client certificate shows its own one first. */
function certificateAt({ hostname, port }: URL, signal: AbortSignal): Promise<X509Certificate> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port), rejectUnauthorized: false })
    signal.addEventListener('abort', () => socket.destroy(), { once: true })
    socket.once('secureConnect', () => {
      const { raw } = socket.getPeerCertificate()
      socket.destroy()
      resolve(new X509Certificate(raw))
    })
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('the connection was closed')))
  })
}

/** Checks the gateway itself, with the requests of its probes and its clients. */
import { randomUUID } from 'node:crypto'
import { headersWith } from '../../auth/request-credentials.ts'
import { sizeText } from '../../document/quantities.ts'
import { ask, codeOf, objectIn, type HttpAnswer, healthOrigin, PORT_ZERO, publicBase } from './requests.ts'
import { notChecked, ok, problem, unknown, warning, type Result } from './finding.ts'
import { settingOf, type Check, type Results, type Subject } from './subject.ts'
import { isObject } from '../../core/json/read.ts'
import { CONFIGURATION_HEADER } from '../../http/listeners/health.ts'

export const READY_CHECK: Check = { name: 'gateway.ready', run: ready }
export const STRANGER_CHECK: Check = { name: 'gateway.authentication', run: refusesStrangers }
export const PREFLIGHT_CHECK: Check = { name: 'gateway.preflight', run: preflights }
export const BODIES_CHECK: Check = { name: 'gateway.bodies', run: takesLargeBodies }
export const HEADERS_CHECK: Check = { name: 'gateway.headers', run: takesLargeHeaders }
export const CALLER_CHECK: Check = { name: 'gateway.caller', run: answersCallers }

const START = 'start it with threadwarden serve'

/** Codes of Node and OpenSSL for a certificate that is not trusted, is for another name, or has expired. */
const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO|ERR_TLS/

export function codeIn(heard: HttpAnswer): string {
  const code = objectIn(heard)?.['code']
  return typeof code === 'string' && /^[a-z0-9-]{1,60}$/.test(code) ? ` (${code})` : ''
}

async function atBase(subject: Subject, look: (base: string) => Promise<Result>): Promise<Result> {
  const { base, result } = reachable(subject)
  if (base === null) return result
  try {
    return await look(base)
  } catch (error) {
    return absent(base, codeOf(error), subject.wishes.url !== null)
  }
}

/** The base for requests to the gateway, or why there are none. */
export function reachable(
  subject: Subject,
): { readonly base: string; readonly result?: never } | { readonly base: null; readonly result: Result } {
  const base = publicBase(subject)
  if (base === null) return { base, result: notChecked(PORT_ZERO, 'pass the address of the gateway with --url') }
  if (subject.wishes.url === null && subject.config.listen.tls?.clientCertificates !== undefined) {
    const why = 'the listener requires client certificates, and the doctor has none'
    return { base: null, result: notChecked(why, 'pass the address of the proxy that has one with --url') }
  }
  return { base }
}

/** @param isNamed true if the operator named the address: then clients use it, and it has to answer */
export function absent(url: string, code: string, isNamed = false): Result {
  const report = isNamed ? problem : notChecked
  if (CERTIFICATE.test(code)) {
    if (!isNamed) return notChecked(`${url} does not present the configured certificate (${code})`, 'see gateway.certificate')
    return problem(
      `the certificate of ${url} is not trusted (${code})`,
      'correct the certificate; for a private certificate authority, run the doctor with NODE_EXTRA_CA_CERTS=FILE',
    )
  }
  if (code === 'ECONNREFUSED') return report(`nothing listens on ${url}`, START)
  return report(
    `${url} gives no answer (${code})`,
    `check that it is the address of the gateway; if the gateway does not run, ${START}`,
  )
}

async function ready({ config, digest }: Subject, signal: AbortSignal): Promise<Results> {
  const origin = healthOrigin(config)
  if (origin === null) return notChecked(PORT_ZERO)
  let heard: HttpAnswer
  try {
    heard = await ask(`${origin}/readyz`, {}, signal)
  } catch (error) {
    return absent(origin, codeOf(error))
  }
  const pending = objectIn(heard)?.['pending']
  if (!isObject(pending)) {
    return problem(
      `${origin}/readyz answered ${heard.status}, but not as this gateway`,
      'check whether another program listens on health.port',
    )
  }
  const running = heard.headers[CONFIGURATION_HEADER]
  if (running !== digest)
    return [unknown('a gateway with another configuration answers there'), otherConfiguration(origin, running)]
  const same = { ...ok('the gateway runs with this configuration'), check: 'gateway.configuration' }
  const more = [same, ...(await droppedKeys(origin, signal))]
  if (heard.status === 200) return [ok('the gateway is ready'), ...more]
  const why = Object.entries(pending).map(
    ([name, reason]) => `${name}: ${typeof reason === 'string' ? reason : 'no reason given'}`,
  )
  const remedy = 'docs/how-to/operate/health-and-readiness.md explains each name'
  return [problem(`the gateway is not ready: ${why.join('; ')}`, remedy), ...more]
}

async function droppedKeys(origin: string, signal: AbortSignal): Promise<readonly Result[]> {
  const check = 'gateway.dropped'
  const { text } = await ask(`${origin}/metrics`, {}, signal).catch(() => ({ text: '' }))
  const dropped = (kind: string): number =>
    Number(new RegExp(`^threadwarden_dropped_total\\{kind="${kind}"\\} (\\d+)$`, 'm').exec(text)?.[1] ?? 0)
  const [inside, fields] = [dropped('nested-key'), dropped('body-key')]
  const results: Result[] = []
  if (inside > 0) {
    const finding = `clients have sent ${inside} keys inside runs that no known version of AG-UI has, and the gateway dropped them`
    const remedy =
      'the log of the gateway names each key once: "dropped a key inside a run". If a newer version of AG-UI has it, update the gateway'
    results.push({ ...warning(finding, remedy), check })
  }
  if (fields > 0) {
    const why = 'neither the route nor the policy forwards them. The log names each once: "dropped a body field"'
    results.push({ ...ok(`the gateway dropped ${fields} body fields: ${why}`), check })
  }
  return results
}

function otherConfiguration(origin: string, running: unknown): Result {
  const check = 'gateway.configuration'
  if (running === undefined) return { ...unknown(`the gateway on ${origin} does not tell its configuration`, 'update it'), check }
  return {
    ...problem(
      `the gateway on ${origin} does not run with this configuration`,
      'check that it is the right gateway and the right file. If you changed the file or a policy, look in the log of the gateway for errors of the reload, or restart the gateway',
    ),
    check,
  }
}

function refusesStrangers(subject: Subject, signal: AbortSignal): Promise<Result> {
  return atBase(subject, async (base) => {
    const { config, mount } = subject
    // An agent has no /info. Without an input nothing runs, whatever server answers.
    const asked = await askedWithout(mount, base, subject, signal)
    if (config.authentication.mode !== 'required') {
      const answers = asked.map(([what, { status }], at) => (at === 0 ? `${what} answers ${status}` : `an envelope ${status}`))
      return ok(`authentication.mode is ${config.authentication.mode}: without a token ${answers.join(', ')}`)
    }
    const wrong = asked.map(([what, heard]) => wrongWithout(what, heard)).filter((one) => one !== null)
    if (wrong.length === 0) return ok('requests without a token get 401')
    return problem(
      wrong.join('; '),
      `check that this gateway answers at that address, and that the path is right (${settingOf(subject, 'publicPath')}, --url)`,
    )
  })
}

/** Only a runtime has envelopes. */
async function askedWithout(
  { api }: Subject['mount'],
  base: string,
  { listener }: Subject,
  signal: AbortSignal,
): Promise<readonly (readonly [what: string, heard: HttpAnswer])[]> {
  if (api === 'agent') return [['a POST', await ask(base, { method: 'POST', body: {} }, signal, listener)]]
  const info = ['GET /info', await ask(`${base}/info`, {}, signal, listener)] as const
  if (api === 'langgraph') return [info]
  return [info, ['POST {"method":"info"}', await ask(base, { method: 'POST', body: { method: 'info' } }, signal, listener)]]
}

function wrongWithout(what: string, heard: HttpAnswer): string | null {
  if (heard.status === 401 && heard.headers['www-authenticate'] !== undefined) return null
  const instead = heard.status === 401 ? '401 without WWW-Authenticate' : `${heard.status}${codeIn(heard)}, not 401`
  return `without a token ${what} answers ${instead}`
}

async function preflights(subject: Subject, signal: AbortSignal): Promise<Result> {
  const { origins } = subject.config.cors
  if (origins.length === 0) return ok('cors.origins is empty: only pages of the same origin can call')
  return atBase(subject, async (base) => {
    const judged = await Promise.all(
      origins.map(async (configured): Promise<string | null> => {
        const origin = configured === '*' ? 'https://threadwarden-doctor.invalid' : configured
        const headers = {
          origin,
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'authorization,content-type',
        }
        const { status, headers: answer } = await ask(
          subject.mount.agentId === null ? `${base}/info` : base,
          { method: 'OPTIONS', headers },
          signal,
          subject.listener,
        )
        const allowed = answer['access-control-allow-origin']
        const named = String(answer['access-control-allow-headers'] ?? '').toLowerCase()
        if (status !== 204) return `a preflight of ${configured} answers ${status}`
        if (allowed !== configured) return `a preflight of ${configured} is not allowed`
        return named.includes('authorization') ? null : `a preflight of ${configured} does not allow the header Authorization`
      }),
    )
    const wrong = judged.filter((one) => one !== null)
    if (wrong.length === 0) return ok(`preflights of ${origins.join(', ')} are admitted`)
    return problem(
      wrong.join('; '),
      'let preflights through to the gateway, and restart it if cors.origins was changed since it started',
    )
  })
}

/** The most that the doctor sends, in bytes: more than the default limits of proxies. */
const LARGE_BODY = 4 * 1024 ** 2

/**
 * nginx, for example, refuses bodies of more than 1 MiB by default. Without a token the gateway answers before the body has come, and
 * a proxy that does not hold bodies back passes that answer on. The key that is there twice is at the end: the gateway reads all of
 * the body, and nothing runs.
 */
async function takesLargeBodies(subject: Subject, signal: AbortSignal): Promise<Results> {
  const { config, mount, wishes } = subject
  if (wishes.url === null) return []
  const bytes = Math.min(LARGE_BODY, config.limits.runBody)
  const { token, run } = wishes
  const frame = '{"id":"","id":1}'
  const body = frame.replace('""', `"${'x'.repeat(bytes - frame.length)}"`)
  return atBase(subject, async (base) => {
    const agentId = run?.agentId ?? 'threadwarden-doctor'
    const runs = {
      runtime: `${base}/agent/${encodeURIComponent(agentId)}/run`,
      agent: base,
      langgraph: `${base}/threads/${randomUUID()}/runs`,
    }
    const url = runs[mount.api]
    const headers = token === null ? {} : headersWith(token, subject.config)
    const heard = await ask(url, { method: 'POST', text: body, headers }, signal, subject.listener)
    // The gateway's own refusals have a code.
    if (heard.status < 400 || codeIn(heard) !== '') {
      return heard.status === 401
        ? ok(`a body of ${sizeText(bytes)} is not refused before the gateway asks for a token`)
        : ok(`a body of ${sizeText(bytes)} reaches the gateway`)
    }
    return problem(
      `a proxy before the gateway refuses a body of ${sizeText(bytes)} with ${heard.status}: long conversations fail`,
      'increase the body limit of the proxy to limits.runBody (nginx: client_max_body_size, Caddy: request_body max_size)',
    )
  })
}

/** Bytes of limits.headers that are left for what proxies on the way add. */
const ROOM_FOR_PROXIES = 1024

/** Tokens with many groups are long, and HAProxy, for example, takes no head of 16 KiB by default. */
async function takesLargeHeaders(subject: Subject, signal: AbortSignal): Promise<Results> {
  const { config, wishes } = subject
  if (wishes.url === null) return []
  const bytes = config.limits.headers - ROOM_FOR_PROXIES
  return atBase(subject, async (base) => {
    const headers = { 'x-threadwarden-doctor': 'x'.repeat(Math.max(bytes, 0)) }
    const heard = await ask(`${base}/info`, { headers }, signal, subject.listener)
    // The gateway's own refusals have a code.
    if (heard.status < 400 || codeIn(heard) !== '') return ok(`headers of ${sizeText(bytes)} reach the gateway`)
    return problem(
      `a proxy before the gateway refuses headers of ${sizeText(bytes)} with ${heard.status}: long tokens fail`,
      'increase the header limit of the proxy to limits.headers (nginx: large_client_header_buffers, HAProxy: tune.bufsize, Caddy: max_header_size)',
    )
  })
}

async function answersCallers(subject: Subject, signal: AbortSignal): Promise<Result> {
  const { token } = subject.wishes
  if (token === null && subject.config.authentication.mode !== 'off') {
    return notChecked('this check needs a token of a caller', 'pass one with --token-file')
  }
  return atBase(subject, async (base) => {
    const headers = token === null ? {} : headersWith(token, subject.config)
    const route = await ask(`${base}/info`, { headers }, signal, subject.listener)
    if (subject.mount.api === 'langgraph') {
      const why = wrongFor('GET /info', route, 'version')
      return why === null ? ok('a caller gets the answer of the server') : wrongAnswer(why, token)
    }
    const envelope = await ask(base, { method: 'POST', headers, body: { method: 'info' } }, signal, subject.listener)
    const wrong = [wrongFor('GET /info', route), wrongFor('POST {"method":"info"}', envelope)].filter((one) => one !== null)
    if (wrong.length === 0) return ok('a caller gets the answer of the runtime, by path and by envelope')
    return wrongAnswer(wrong.join('; '), token)
  })
}

function wrongAnswer(what: string, token: string | null): Result {
  return problem(
    `with the token ${what}`,
    `${token === null ? '' : 'see issuers.token; if the token is accepted there, '}the log line of the request has the reason: docs/reference/errors.md explains each reason`,
  )
}

function wrongFor(what: string, heard: HttpAnswer, member: 'agents' | 'version' = 'agents'): string | null {
  const said = heard.status === 200 ? objectIn(heard)?.[member] : undefined
  if (member === 'agents' ? isObject(said) : typeof said === 'string') return null
  return `${what} answers ${heard.status}${codeIn(heard)}`
}

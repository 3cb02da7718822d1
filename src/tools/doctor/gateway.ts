/** Checks the gateway itself, with the requests of its probes and its clients. */
import { ask, codeOf, objectIn, type HttpAnswer, healthOrigin, PORT_ZERO, publicBase } from './requests.ts'
import { notChecked, ok, problem, type Result } from './finding.ts'
import { settingOf, type Check, type Subject } from './subject.ts'
import { isObject } from '../../core/json/read.ts'

export const READY_CHECK: Check = { name: 'gateway.ready', run: ready }
export const STRANGER_CHECK: Check = { name: 'gateway.authentication', run: refusesStrangers }
export const PREFLIGHT_CHECK: Check = { name: 'gateway.preflight', run: preflights }
export const CALLER_CHECK: Check = { name: 'gateway.caller', run: answersCallers }

const START = 'start it with threadwarden serve'

export function codeIn(heard: HttpAnswer): string {
  const code = objectIn(heard)?.['code']
  return typeof code === 'string' && /^[a-z0-9-]{1,60}$/.test(code) ? ` (${code})` : ''
}

async function atBase(subject: Subject, look: (base: string) => Promise<Result>): Promise<Result> {
  const base = publicBase(subject)
  if (base === null) return notChecked(PORT_ZERO, 'pass the address of the gateway with --url')
  try {
    return await look(base)
  } catch (error) {
    return absent(base, codeOf(error))
  }
}

export function absent(url: string, code: string): Result {
  if (code === 'ECONNREFUSED') return notChecked(`nothing listens on ${url}`, START)
  return notChecked(`${url} gives no answer (${code})`, `is it the gateway? If it is not running, ${START}`)
}

async function ready({ config }: Subject, signal: AbortSignal): Promise<Result> {
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
      `${origin}/readyz answered ${heard.status}, and not as this gateway`,
      'does something else listen on health.port?',
    )
  }
  if (heard.status === 200) return ok('the gateway is ready')
  const why = Object.entries(pending).map(
    ([name, reason]) => `${name}: ${typeof reason === 'string' ? reason : 'it does not say'}`,
  )
  return problem(
    `the gateway is not ready: ${why.join('; ')}`,
    'docs/how-to/operate/health-and-readiness.md explains each name',
  )
}

function refusesStrangers(subject: Subject, signal: AbortSignal): Promise<Result> {
  return atBase(subject, async (base) => {
    const { config, mount } = subject
    // An agent has no /info. Without an input nothing runs, whatever server answers.
    const asked: readonly (readonly [what: string, heard: HttpAnswer])[] =
      mount.agentId === null
        ? [
            ['GET /info', await ask(`${base}/info`, {}, signal)],
            ['POST {"method":"info"}', await ask(base, { method: 'POST', body: { method: 'info' } }, signal)],
          ]
        : [['a POST', await ask(base, { method: 'POST', body: {} }, signal)]]
    if (config.authentication.mode !== 'required') {
      const answers = asked.map(([what, { status }], at) => (at === 0 ? `${what} answers ${status}` : `an envelope ${status}`))
      return ok(`authentication.mode is ${config.authentication.mode}: without a token ${answers.join(', ')}`)
    }
    const wrong = asked.map(([what, heard]) => wrongWithout(what, heard)).filter((one) => one !== null)
    if (wrong.length === 0) return ok('requests without a token get 401')
    return problem(
      wrong.join('; '),
      `is it this gateway that answers at that address, with this configuration, and is its path right (${settingOf(subject, 'publicPath')}, --url)?`,
    )
  })
}

function wrongWithout(what: string, heard: HttpAnswer): string | null {
  if (heard.status === 401 && heard.headers['www-authenticate'] !== undefined) return null
  const instead = heard.status === 401 ? '401 without WWW-Authenticate' : `${heard.status}${codeIn(heard)}, not 401`
  return `without a token ${what} answers ${instead}`
}

async function preflights(subject: Subject, signal: AbortSignal): Promise<Result> {
  const { origins } = subject.config.cors
  if (origins.length === 0) return ok('cors.origins names none: only pages of its own origin can call')
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
        )
        const allowed = answer['access-control-allow-origin']
        const named = String(answer['access-control-allow-headers'] ?? '').toLowerCase()
        if (status !== 204) return `a preflight of ${configured} answers ${status}`
        if (allowed !== configured) return `a preflight of ${configured} does not admit it`
        return named.includes('authorization') ? null : `a preflight of ${configured} does not admit Authorization`
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

async function answersCallers(subject: Subject, signal: AbortSignal): Promise<Result> {
  const { token } = subject.wishes
  if (token === null && subject.config.authentication.mode !== 'off') {
    return notChecked("it takes a caller's token to ask as a caller", 'pass one with --token-file')
  }
  return atBase(subject, async (base) => {
    const headers: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` }
    const route = await ask(`${base}/info`, { headers }, signal)
    const envelope = await ask(base, { method: 'POST', headers, body: { method: 'info' } }, signal)
    const wrong = [wrongFor('GET /info', route), wrongFor('POST {"method":"info"}', envelope)].filter((one) => one !== null)
    if (wrong.length === 0) return ok('a caller gets the answer of the runtime, by path and by envelope')
    return problem(
      `with the token ${wrong.join('; ')}`,
      'the log line of the request has the reason: docs/reference/errors.md tells what each means',
    )
  })
}

function wrongFor(what: string, heard: HttpAnswer): string | null {
  if (heard.status === 200 && isObject(objectIn(heard)?.['agents'])) return null
  return `${what} answers ${heard.status}${codeIn(heard)}`
}

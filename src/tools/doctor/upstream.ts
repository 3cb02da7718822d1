/** Checks that the upstream, a runtime or an agent, answers, and as what. The requests are those that the gateway sends for itself. */
import { askRuntime } from '../../http/upstream/transport-probe.ts'
import { askInfo, askUpstream, codeOf, objectIn, judgeClock } from './requests.ts'
import { notChecked, ok, problem, seconds, unknown, type Result } from './finding.ts'
import { settingOf, UNSHOWN, type Check, type Results, type Subject } from './subject.ts'
import { isObject } from '../../core/json/read.ts'

/** The versions that this program's tests run. */
export const TESTED = ['1.75', '1.54']

export const UPSTREAM_CHECKS: readonly Check[] = [
  reachability('upstream', 'runtime'),
  { name: 'upstream.runtime', run: recognise },
  { name: 'upstream.version', run: ({ known }) => judgeVersion(known.version) },
]

/** A self-hosted agent answers no questions about itself: only the configuration says what it is. */
export const AGENT_CHECK = reachability('agent', 'agent')

function reachability(part: 'upstream' | 'agent', server: 'runtime' | 'agent'): Check {
  return {
    name: `${part}.reachable`,
    late: ({ mount, wishes }) =>
      problem(
        `${mount.url} gives no answer within ${seconds(wishes.timeout)}`,
        `check that the ${server} listens there and is not overloaded, or increase --timeout`,
      ),
    async run(subject, signal) {
      const { url, basePath, place } = subject.mount
      const { clockTolerance } = subject.config.authentication
      try {
        // Runs are POSTed to an agent, so any answer to a GET shows that it is there.
        const target = part === 'agent' ? basePath : `${basePath}/info`
        const { headers } = await askUpstream(subject, { method: 'GET', target, headers: subject.headers }, signal)
        subject.known.isReached = true
        const clock = judgeClock(`the ${part}`, headers, subject.clock(), clockTolerance)
        return [ok(`${url} answers`), { ...clock, check: `${part}.clock` }]
      } catch (error) {
        const { message, remedy } = explainUpstream(codeOf(error), url, place.join('.'), server)
        return [problem(message, remedy), { ...notChecked(`the ${part} gives no answer`), check: `${part}.clock` }]
      }
    },
  }
}

async function recognise(subject: Subject, signal: AbortSignal): Promise<Results> {
  const { upstream, mount, known, headers } = subject
  const { basePath, transport } = mount
  const named = transport === 'auto' || transport === 'endpoint' ? null : transport
  const verdict = await askRuntime({ upstream, basePath, headers }, named, signal)
  if (verdict.kind === 'away') return notChecked(verdict.why)
  if (verdict.kind === 'unfit') return unfit(verdict.why, named, subject)
  known.facts = verdict.facts
  known.version = verdict.version
  const info = objectIn(await askInfo(subject, verdict.facts, signal))
  const agents = info?.['agents']
  known.agents = isObject(agents) ? Object.keys(agents) : []
  if (named !== null && named !== verdict.facts.transport) {
    return problem(
      `${settingOf(subject, 'transport')} says ${named}, but the upstream is ${verdict.facts.transport}: the gateway answers 503 and forwards nothing`,
      `write ${settingOf(subject, 'transport')}: ${verdict.facts.transport}, or auto`,
    )
  }
  const kind = verdict.facts.managed ? 'of the managed platform' : 'with its own thread store'
  const count = `${known.agents.length} ${known.agents.length === 1 ? 'agent' : 'agents'}`
  return ok(`a ${verdict.facts.transport} runtime ${kind} and ${count}`)
}

function unfit(why: string, named: string | null, subject: Subject): Result {
  const [headers, transport, basePath] = ['headers', 'transport', 'basePath'].map((key) => settingOf(subject, key))
  const refused = / answered 40[13]:/.test(why)
  if (named !== null) {
    return unknown(
      `${why}; the gateway uses ${transport}: ${named}`,
      refused ? `write a credential that the runtime accepts to ${headers}, so that the doctor can check more` : undefined,
    )
  }
  return problem(
    `${why.replace(/; is \S+ right\?$/, '')}. The gateway answers 503 and forwards nothing`,
    refused
      ? `write a credential that the runtime accepts for /info to ${headers}, or write ${transport}`
      : `correct ${basePath}: it is the path under which the runtime serves its routes`,
  )
}

function judgeVersion(version: string | null): Result {
  if (version === null) return notChecked(UNSHOWN)
  // The doctor prints what an upstream says about itself only if it looks like a version.
  if (!/^[\w.+-]{1,40}$/.test(version)) return unknown('the upstream does not tell its version')
  if (TESTED.some((tested) => version.startsWith(`${tested}.`))) {
    return ok(`runtime ${version}: this gateway is tested with this version`)
  }
  return unknown(
    `runtime ${version}: this gateway is tested with ${TESTED.map((tested) => `${tested}.x`).join(' and ')}`,
    'read docs/reference/supported-versions.md for the differences between versions, and test yours',
  )
}

/** @param at the path of the upstream in the configuration */
function explainUpstream(
  code: string,
  url: string,
  at: string,
  what: 'runtime' | 'agent',
): { readonly message: string; readonly remedy: string } {
  switch (code) {
    case 'ECONNREFUSED':
      return { message: `nothing listens on ${url}`, remedy: `start the ${what}, or correct ${at}.url` }
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return {
        message: `the host name in ${url} cannot be resolved here (${code})`,
        remedy: `correct ${at}.url, or the DNS of this machine`,
      }
    case 'UND_ERR_CONNECT_TIMEOUT':
    case 'ETIMEDOUT':
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return {
        message: `${url} accepts no connection (${code})`,
        remedy: `check the address, the network policy and firewalls; ${at}.timeouts.connect limits the wait`,
      }
    case 'EPROTO':
      return { message: `${url} does not use TLS`, remedy: `write http:// in ${at}.url, or the port that uses https` }
    default:
      // The alerts of a server (RFC 8446 §6.2): it requires a client certificate, or does not accept this one.
      if (/_ALERT_(?:\w*CERTIFICATE|HANDSHAKE_FAILURE|UNKNOWN_CA|ACCESS_DENIED)/.test(code)) {
        return {
          message: `${url} does not accept the client certificate of the gateway, or requires one (${code})`,
          remedy: `write ${at}.tls.certificateFile and ${at}.tls.keyFile, with a certificate that the ${what} accepts`,
        }
      }
      if (/PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL/.test(code)) {
        return { message: `${url} has no TLS version in common with the gateway (${code})`, remedy: `see ${at}.tls.minVersion` }
      }
      if (code.startsWith('ERR_SSL')) return explainUpstream('EPROTO', url, at, what)
      if (/CERT|SELF_SIGNED|UNABLE_TO|ERR_TLS/.test(code)) {
        return {
          message: `the certificate of ${url} is not trusted (${code})`,
          remedy: `write its certificate authority to ${at}.tls.ca, and the host name of the certificate to ${at}.url or ${at}.tls.serverName`,
        }
      }
      return {
        message: `${url} closes the connection without an HTTP answer (${code})`,
        // With TLS 1.3 a server refuses a client certificate after the request (RFC 8446 §4.4.2.4), and only closes the connection.
        remedy: `check that it is the port of the ${what}, and that http:// or https:// is right for that port${
          url.startsWith('https:') ? `; a server that requires a client certificate needs ${at}.tls.certificateFile` : ''
        }`,
      }
  }
}

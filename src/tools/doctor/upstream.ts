/** Checks that the upstream, a runtime or an agent, answers, and as what. The requests are those that the gateway sends for itself. */
import { explainFailure, type UpstreamSetting } from '../../http/upstream/failure-text.ts'
import { askRuntime } from '../../http/upstream/transport-probe.ts'
import { askInfo, askUpstream, codeOf, objectIn, judgeClock } from './requests.ts'
import { notChecked, ok, problem, seconds, unknown, warning, type Result } from './finding.ts'
import { settingOf, UNSHOWN, type Check, type Results, type Subject } from './subject.ts'
import { TRANSPORTS } from '../../core/route/transport.ts'
import { isObject } from '../../core/json/read.ts'
import {
  AGENT_HEADERS_WIN,
  agentHeadersWin,
  forwardedToAgents,
  NEWEST_TESTED,
  TESTED_RUNTIMES,
  testedState,
  type Tested,
} from '../../core/route/runtime-version.ts'

const UPSTREAM_REACHABLE = reachability('upstream', 'runtime')

export const SERVER_REACHABLE = reachability('upstream', 'server')

export const UPSTREAM_CHECKS: readonly Check[] = [
  UPSTREAM_REACHABLE,
  { name: 'upstream.runtime', run: recognise },
  { name: 'upstream.version', run: ({ known }) => judgeVersion(known.version) },
  { name: 'upstream.headers', run: judgeAgentHeaders },
]

const SETTINGS: Readonly<Record<UpstreamSetting, string>> = {
  url: 'url',
  ca: 'tls.ca',
  timeout: 'timeouts.connect',
  certificate: 'tls.certificateFile',
  key: 'tls.keyFile',
  minVersion: 'tls.minVersion',
  serverName: 'tls.serverName',
}

/** A self-hosted agent answers no questions about itself: only the configuration says what it is. */
export const AGENT_CHECK = reachability('agent', 'agent')

function reachability(part: 'upstream' | 'agent', server: 'runtime' | 'agent' | 'server'): Check {
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
        const setting = (key: UpstreamSetting): string => [...place, SETTINGS[key]].join('.')
        const { message, remedy } = explainFailure(codeOf(error), { url, server, setting })
        return [problem(message, remedy), { ...notChecked(`the ${part} gives no answer`), check: `${part}.clock` }]
      }
    },
  }
}

async function recognise(subject: Subject, signal: AbortSignal): Promise<Results> {
  const { upstream, mount, known, headers } = subject
  const { basePath, transport } = mount
  const named = TRANSPORTS.find((one) => one === transport) ?? null
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

const UNTOLD = unknown('the upstream does not tell its version')

const MINORS = [...new Set(TESTED_RUNTIMES.map((version) => version.split('.').slice(0, 2).join('.')))].join(', ')

const VERSIONS: Readonly<Record<Tested, (version: string) => Result>> = {
  yes: (version) => ok(`runtime ${version}: this gateway is tested with this version`),
  no: (version) =>
    unknown(
      `runtime ${version}: this gateway is tested with ${MINORS}`,
      'read docs/reference/runtime-versions.md for the differences between versions, and test yours',
    ),
  newer: (version) =>
    warning(
      `runtime ${version} is newer than ${NEWEST_TESTED}, the newest version that this gateway is tested with: routes and fields that it adds are refused or dropped`,
      'look for a newer gateway, and follow docs/how-to/operate/new-runtime-version.md',
    ),
  unknown: () => UNTOLD,
}

function judgeVersion(version: string | null): Result {
  return version === null ? notChecked(UNSHOWN) : VERSIONS[testedState(version)](version)
}

function judgeAgentHeaders({ known: { version }, config: { forwardHeaders } }: Subject): Result {
  if (version === null) return notChecked(UNSHOWN)
  const agentsWin = agentHeadersWin(version)
  if (agentsWin === null) return UNTOLD
  if (agentsWin) return ok(`runtime ${version}: the headers of an agent in the runtime win over those of a caller`)
  const names = forwardedToAgents(forwardHeaders)
  if (names.length === 0) return ok(`runtime ${version} takes x-* headers of callers, but the gateway forwards none`)
  return warning(
    `runtime ${version} lets headers of a caller replace those of an agent in the runtime, and the gateway forwards ${names.join(', ')}`,
    `remove them from forwardHeaders, or upgrade the runtime to ${AGENT_HEADERS_WIN} or later`,
  )
}

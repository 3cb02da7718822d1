/** Reports the version of a runtime or a LangGraph server: a metric, and warnings that depend on it. */
import {
  AGENT_HEADERS_WIN,
  agentHeadersWin,
  forwardedToAgents,
  NEWEST_TESTED,
  TESTED_LANGGRAPH,
  testedLangGraph,
  testedState,
} from '../../core/route/runtime-version.ts'
import type { Logger } from '../../observe/log.ts'
import type { RuntimeMetrics } from '../../observe/metrics.ts'

export interface VersionNotices {
  /** The upstream has said its version. */
  readonly met: (version: string) => void
  /** A configuration with these `forwardHeaders` is active. */
  activate(forwardHeaders: readonly string[]): void
}

/** @param key of the upstream */
export function makeVersionNotices(
  key: string,
  kind: 'runtime' | 'langgraph',
  metrics: RuntimeMetrics,
  log: Logger,
): VersionNotices {
  let version: string | null = null
  let headers: readonly string[] | null = null
  const said = new Set<string>()
  const once = (what: string, say: () => void): void => {
    if (said.has(what)) return
    said.add(what)
    say()
  }

  const reportServer = (server: string): void => {
    const tested = testedLangGraph(server)
    metrics.runtime(key, server, tested)
    if (tested !== 'newer') return
    once(`newer ${server}`, () =>
      log.warn(
        { version: server, tested: TESTED_LANGGRAPH },
        'the LangGraph server is newer than the version that this gateway is tested with: routes and fields that it adds are refused or dropped',
      ),
    )
  }

  /** Before the configuration is active, it may still be refused. */
  const report = (): void => {
    if (version === null || headers === null) return
    if (kind === 'langgraph') {
      reportServer(version)
      return
    }
    const runtime = version
    metrics.runtime(key, runtime)
    if (testedState(runtime) === 'newer') {
      once(`newer ${runtime}`, () =>
        log.warn(
          { version: runtime, tested: NEWEST_TESTED },
          'the runtime is newer than the newest version that this gateway is tested with: routes and fields that it adds are refused or dropped',
        ),
      )
    }
    const names = agentHeadersWin(runtime) === false ? forwardedToAgents(headers) : []
    if (names.length > 0) {
      once(`headers ${runtime} ${names.join(' ')}`, () =>
        log.warn(
          { version: runtime, headers: names, since: AGENT_HEADERS_WIN },
          'forwardHeaders names x-* headers, and this version of the runtime lets them replace those of an agent: remove them, or upgrade the runtime',
        ),
      )
    }
  }

  return {
    met: (now) => {
      if (version === now) return
      version = now
      report()
    },
    activate(forwardHeaders) {
      headers = forwardHeaders
      report()
    },
  }
}

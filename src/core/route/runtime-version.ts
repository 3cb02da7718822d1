/** What the gateway knows about versions of the runtime (runtime-behaviour.md, "Versions"), and of LangGraph servers. */

/** The versions that the contract tests run, oldest first (docs/reference/runtime-versions.md). */
export const TESTED_RUNTIMES = ['1.54.1', '1.57.4', '1.61.2', '1.62.2', '1.62.3', '1.66.4', '1.69.3', '1.72.0', '1.75.0'] as const

export const NEWEST_TESTED = TESTED_RUNTIMES[TESTED_RUNTIMES.length - 1] as string

/** The first version in which the headers of an agent in the runtime win over those of a caller. */
export const AGENT_HEADERS_WIN = '1.62.3'

/** Major, minor and patch. */
export type VersionNumbers = readonly [number, number, number]

/** An upstream chooses this text. @returns null unless it has the form of a version, such as `1.75.0` or `1.76.0-next.1` */
export function versionNumbers(version: string): VersionNumbers | null {
  const match = /^(\d{1,6})\.(\d{1,6})\.(\d{1,6})(?:[-+][\w.+-]{1,20})?$/.exec(version)
  return match === null ? null : [Number(match[1]), Number(match[2]), Number(match[3])]
}

/** Both have the form of a version. A pre-release counts as its release. */
function isBefore(version: VersionNumbers, other: VersionNumbers): boolean {
  const at = version.findIndex((number, index) => number !== other[index])
  return at !== -1 && (version[at] ?? 0) < (other[at] ?? 0)
}

function numbersOf(version: string): VersionNumbers {
  return versionNumbers(version) ?? [0, 0, 0]
}

/** `yes`: a version of the same minor number is tested. `unknown`: the text does not have the form of a version. */
export type Tested = 'yes' | 'no' | 'newer' | 'unknown'

export function testedState(version: string): Tested {
  return stateAmong(version, TESTED_RUNTIMES, NEWEST_TESTED)
}

/** The version of `@langchain/langgraph-api` that the tests run. */
export const TESTED_LANGGRAPH = '1.3.0'

export function testedLangGraph(version: string): Tested {
  return stateAmong(version, [TESTED_LANGGRAPH], TESTED_LANGGRAPH)
}

function stateAmong(version: string, among: readonly string[], newest: string): Tested {
  const numbers = versionNumbers(version)
  if (numbers === null) return 'unknown'
  if (isBefore(numbersOf(newest), numbers)) return 'newer'
  const [major, minor] = numbers
  return among.some((tested) => tested.startsWith(`${major}.${minor}.`)) ? 'yes' : 'no'
}

/** Another patch of the newest tested version. */
export function isLikeNewest(version: string): boolean {
  return version.startsWith(NEWEST_TESTED.replace(/\d+$/, ''))
}

/** @returns null unless the text has the form of a version */
export function agentHeadersWin(version: string): boolean | null {
  const numbers = versionNumbers(version)
  return numbers === null ? null : !isBefore(numbers, numbersOf(AGENT_HEADERS_WIN))
}

/** The configured `forwardHeaders` that such a runtime copies to its agents. */
export function forwardedToAgents(forwardHeaders: readonly string[]): readonly string[] {
  return forwardHeaders.filter((name) => /^x-/i.test(name))
}

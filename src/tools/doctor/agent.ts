/** Checks that a self-hosted agent answers. It answers no questions about itself: only the configuration says what it is. */
import { askUpstream, codeOf } from './requests.ts'
import { judgeClock } from './clock.ts'
import { explainUpstream } from './failures.ts'
import { notChecked, ok, problem, seconds, type Finding } from './finding.ts'
import type { Check, Subject } from './subject.ts'

export const AGENT_CHECK: Check = {
  name: 'agent.reachable',
  late: ({ mount, wishes }) =>
    problem(
      'agent.reachable',
      `${mount.url} gives no answer within ${seconds(wishes.timeout)}`,
      'is it the agent that listens there, and is it overloaded? A longer --timeout waits longer',
    ),
  run: reach,
}

async function reach(subject: Subject, signal: AbortSignal): Promise<readonly Finding[]> {
  const { url, basePath, place } = subject.mount
  try {
    // Runs are POSTed, so any answer to a GET shows that the agent is there.
    const { headers } = await askUpstream(subject, { method: 'GET', target: basePath, headers: subject.headers }, signal)
    const { clockTolerance } = subject.config.authentication
    return [
      ok('agent.reachable', `${url} answers`),
      judgeClock('agent.clock', 'the agent', headers, subject.clock(), clockTolerance),
    ]
  } catch (error) {
    const { message, remedy } = explainUpstream(codeOf(error), url, place.join('.'), 'agent')
    return [problem('agent.reachable', message, remedy), notChecked('agent.clock', 'the agent gives no answer')]
  }
}

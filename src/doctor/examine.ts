/** Runs the checks in order, each within its time. One that fails or hangs says so, and the others go on. */
import { readFileSync } from 'node:fs'
import { mountsOf } from '../config/mounts.ts'
import { storeOf } from '../config/ownership-schema.ts'
import type { Config } from '../config/schema.ts'
import { openUpstream } from '../http/upstream.ts'
import { codeOf, NoAnswer } from './asking.ts'
import { makeDiscreet } from './discreet.ts'
import { notChecked, seconds, type Finding } from './finding.ts'
import { GATEWAY_CHECKS } from './gateway.ts'
import { ISSUER_CHECKS } from './issuers.ts'
import { RUN_CHECK } from './live-run.ts'
import { STORE_CHECKS } from './store.ts'
import type { Check, Machine, Subject, Wishes } from './subject.ts'
import { THREAD_CHECKS } from './threads.ts'
import { OPENNESS_CHECKS } from './openness.ts'
import { ROUTES_CHECK } from './routes.ts'
import { STREAMS_CHECK } from './streams.ts'
import { UPSTREAM_CHECKS } from './upstream.ts'

/** In this order: what one finds out, those behind it use. */
const CHECKS: readonly Check[] = [
  ...STORE_CHECKS,
  ...ISSUER_CHECKS,
  ...UPSTREAM_CHECKS,
  ROUTES_CHECK,
  ...OPENNESS_CHECKS,
  ...THREAD_CHECKS,
  STREAMS_CHECK,
  ...GATEWAY_CHECKS,
  RUN_CHECK,
]

/**
 * Examines everything around a configuration.
 * @param config a configuration that was loaded and checked
 * @param machine what is looked at of this machine
 * @param onCheck told of each check before it begins
 * @param clock milliseconds since the epoch
 */
export async function examine(
  config: Config,
  wishes: Wishes,
  machine: Machine,
  onCheck: (name: string) => void = () => {},
  clock: () => number = Date.now,
): Promise<readonly Finding[]> {
  const [mount] = mountsOf(config)
  const { url, timeouts, ca, headers } = mount
  const connect = Math.min(timeouts.connect === 0 ? wishes.timeout : timeouts.connect, wishes.timeout)
  const upstream = openUpstream({
    url,
    timeouts: { connect, headers: 0, body: 0 },
    ...(ca === undefined ? {} : { ca: readFileSync(ca, 'utf8') }),
  })
  const subject: Subject = {
    config,
    mount,
    wishes,
    machine,
    upstream,
    headers: {
      'accept-encoding': 'identity',
      ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
    },
    clock,
    known: { facts: null, version: null, agents: [], histories: null, storeEmpty: null },
  }
  const store = storeOf(config.ownership)
  const password = store.kind === 'postgres' ? store.settings.password : null
  const discreet = makeDiscreet([...Object.values(headers), ...[wishes.token, password].filter((secret) => secret !== null)])
  const findings: Finding[] = []
  try {
    for (const check of CHECKS) {
      onCheck(check.name)
      findings.push(...(await within(check, subject)))
    }
  } finally {
    await upstream.close()
  }
  return findings.map(discreet)
}

async function within(check: Check, subject: Subject): Promise<readonly Finding[]> {
  const limit = Math.max(subject.wishes.timeout, check.atLeast ?? 0)
  const controller = new AbortController()
  const late = Promise.withResolvers<readonly Finding[]>()
  const timer = setTimeout(() => {
    const { late: meaning } = check
    late.resolve([meaning?.(subject) ?? notChecked(check.name, `no answer within ${seconds(limit)}`, 'try a longer --timeout')])
    controller.abort()
  }, limit)
  try {
    return await Promise.race([check.run(subject, controller.signal), late.promise])
  } catch (error) {
    return [notChecked(check.name, `${error instanceof NoAnswer ? 'no answer' : 'the check failed'} (${codeOf(error)})`)]
  } finally {
    clearTimeout(timer)
    controller.abort()
  }
}

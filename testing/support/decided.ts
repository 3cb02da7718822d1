/** What a failing assertion says of the requests before it: a difference alone names no request and no rule. */
import type { Extra, Test } from 'tap'
import type { TestGateway } from './gateway.ts'

/** Tests ask one request after the other, or a few at once. */
const SHOWN = 3

/** What an assertion is given; a test with two gateways adds the requests to each. */
type Given = Extra & { readonly requests?: readonly string[] }

/** Adds the last requests to each failing assertion of a test, with what was decided and by which rule. */
export function sayOnFailure(t: Test, gateway: TestGateway): void {
  // Every assertion that fails ends here; what it is given besides is printed with the difference.
  const fail = t.fail.bind(t)
  t.fail = (...[message, extra]) => {
    const [text, given]: [string, Given] = typeof message === 'object' ? ['failed', message] : [message ?? 'failed', extra ?? {}]
    const own = gateway.lines.filter(({ msg }) => msg === 'request').slice(-SHOWN)
    const requests = [...(given.requests ?? []), ...own.map((line) => textOf(line, gateway.asked))]
    return fail(text, { ...given, requests })
  }
}

/** `GET /api/copilotkit/threads/t1/state (threads/state, thread t1) as corp:bob: 404, thread-foreign` */
function textOf(line: Readonly<Record<string, unknown>>, asked: TestGateway['asked']): string {
  const { requestId = '', method, route, thread, principal, status, reason, rule } = line as Partial<Record<string, string>>
  const about = thread === undefined ? route : `${route}, thread ${thread}`
  const by = rule === undefined ? '' : ` by the rule "${rule}"`
  return `${asked.get(requestId) ?? method} (${about}) as ${principal ?? 'nobody'}: ${status}, ${reason}${by}`
}

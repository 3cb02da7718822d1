/** What gateways say and do while something is wrong with their store. */
import { askAs, type CrowdParts, type Told } from './crowd.ts'
import type { Gateway } from './gateways.ts'
import type { Ledger } from './ledger.ts'

/** Who asks whom about what. */
export interface OutageParts extends Pick<CrowdParts, 'tokenOf' | 'moments' | 'random'> {
  readonly gateways: readonly Gateway[]
  readonly ledger: Ledger
  /** A thread, its owner, and a user whose it is not. */
  readonly thread: string
  readonly owner: string
  readonly stranger: string
}

/** What of the store goes on: nothing, or what needs no writing. */
export type Left = 'nothing' | 'reads'

const UNAVAILABLE = '503 store-unavailable'
const NOT_OWNER = '403 not-owner'

/**
 * Asks all gateways everything while the store fails.
 * @returns what is not as it should be, in words
 */
export async function outageFaults(parts: OutageParts, left: Left): Promise<readonly string[]> {
  const found = await Promise.all(parts.gateways.map((gateway) => faultsOf(gateway, parts, left)))
  return found.flat()
}

/**
 * Asks all gateways when all is well again.
 * @returns what is not as it should be, in words
 */
export async function recoveryFaults(parts: OutageParts): Promise<readonly string[]> {
  const found = await Promise.all(
    parts.gateways.map(async (gateway) => [
      ...(await healthFaults(gateway, parts, 'ready')),
      ...(await askedFaults(gateway, parts, { owner: '200', stranger: NOT_OWNER, fresh: '200' })),
    ]),
  )
  return found.flat()
}

async function faultsOf(gateway: Gateway, parts: OutageParts, left: Left): Promise<readonly string[]> {
  return [
    ...(await healthFaults(gateway, parts, 'pending')),
    ...(await askedFaults(gateway, parts, {
      // What a cache says of the owner is true for a second: nothing is asked of it.
      owner: left === 'reads' ? '200' : null,
      stranger: left === 'reads' ? NOT_OWNER : UNAVAILABLE,
      fresh: UNAVAILABLE,
    })),
  ]
}

async function healthFaults(
  { base, healthUrl }: Gateway,
  { tokenOf, owner }: OutageParts,
  expected: 'ready' | 'pending',
): Promise<readonly string[]> {
  const alive = await fetch(`${healthUrl}/livez`)
  const ready = await fetch(`${healthUrl}/readyz`)
  const { pending } = (await ready.json()) as { readonly pending: Readonly<Record<string, string>> }
  const info = await fetch(`${base}/info`, { headers: { authorization: `Bearer ${tokenOf(owner)}` } })
  await Promise.all([alive.text(), info.text()])
  return [
    ...(alive.status === 200 ? [] : [`/livez is ${alive.status}`]),
    ...(ready.status === (expected === 'ready' ? 200 : 503) ? [] : [`/readyz is ${ready.status}`]),
    ...('store' in pending === (expected === 'pending') ? [] : [`/readyz names ${JSON.stringify(pending)}`]),
    ...(info.status === 200 ? [] : [`/info is ${info.status}`]),
  ]
}

/** What each is to be told: the owner and a stranger on the thread, and anybody on a new one. Null for whatever it is. */
interface Expected {
  readonly owner: string | null
  readonly stranger: string
  readonly fresh: string
}

async function askedFaults({ base }: Gateway, parts: OutageParts, expected: Expected): Promise<readonly string[]> {
  const { thread, owner, stranger, ledger } = parts
  const fresh = `fresh-${parts.moments()}`
  const asked: readonly (readonly [string | null, Promise<Told>])[] = [
    [expected.owner, askAs(parts, base, thread, owner, 'started')],
    [expected.owner, askAs(parts, base, thread, owner, 'read')],
    [expected.stranger, askAs(parts, base, thread, stranger, 'started')],
    [expected.stranger, askAs(parts, base, thread, stranger, 'read')],
    [expected.stranger, askAs(parts, base, thread, stranger, 'delete')],
    [expected.fresh, askAs(parts, base, fresh, stranger, 'started')],
  ]
  const faults: string[] = []
  for (const [answer, request] of asked) {
    const told = await request
    const got = told.code === undefined ? String(told.status) : `${told.status} ${told.code}`
    const arrived = [...ledger.arrivals(thread), ...ledger.arrivals(fresh)].some(({ mark }) => mark === told.mark)
    if (answer !== null && got !== answer) faults.push(`${got} in place of ${answer}: ${JSON.stringify(told)}`)
    if (arrived !== (got === '200')) faults.push(`${arrived ? 'arrived' : 'did not arrive'}: ${JSON.stringify(told)}`)
  }
  return faults
}

/** The histories that are taken: a few operations each, with what is there at the beginning. */
import type { Act, Beginning, Operation } from './world.ts'

/** Operations at once. */
export interface Scenario {
  readonly acts: readonly Act[]
  readonly beginning: Beginning
}

function act(text: string): Act {
  const [user = '', what = '', gateway = 'A'] = text.split(' ')
  return { user, what: what as Operation, gateway: gateway as Act['gateway'] }
}

const at = (granted: boolean, seconds: number, ...acts: string[]): Scenario => ({
  acts: acts.map(act),
  beginning: { granted, seconds },
})

/** By what they are about. */
export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'a read while the grant ends': at(true, 1, 'bob read', 'op ungrant'),
  'a read while the grant ends at another gateway': at(true, 1, 'bob read', 'op ungrant B'),
  'a run while the grant ends at another gateway': at(true, 1, 'bob run', 'op ungrant B'),
  'a run while the grant ends and comes again': at(true, 1, 'bob run', 'op ungrant', 'op grant'),
  'a read while the user is revoked': at(true, 1, 'bob read', 'op revoke'),
  'a read while the rules change': at(true, 1, 'bob read', 'op reload'),
  'a run while the rules change': at(true, 1, 'bob run', 'op reload'),
  'a run while the thread is given away': at(true, 1, 'bob run', 'op transfer B'),
  'the owner’s run while the thread is given away': at(false, 1, 'alice run', 'op transfer B'),
  'two runs of two users on one thread': at(true, 0, 'alice run', 'bob run B'),
  'a deletion and a run': at(false, 0, 'alice delete', 'alice run'),
  'a deletion and a run of another gateway': at(false, 0, 'alice delete', 'alice run B'),
  'two deletions and a run': at(false, 0, 'alice delete', 'alice delete', 'alice run'),
  'a deletion, pruning, and another user': at(false, 0, 'alice delete', 'op prune', 'bob run'),
  'a run, a deletion, pruning, and another user': at(false, 0, 'alice run', 'alice delete', 'op prune', 'bob run'),
  'a run, a deletion at another gateway, pruning, and another user': at(
    false,
    0,
    'alice run',
    'alice delete B',
    'op prune',
    'bob run',
  ),
  'a guest’s run, a deletion, pruning, and another user': at(true, 0, 'bob run', 'alice delete', 'op prune', 'bob run B'),
  'a crash in a run, a deletion, pruning, and another user': at(
    false,
    0,
    'alice run',
    'op crash',
    'alice delete',
    'op prune',
    'bob run B',
  ),
  'a crash in a deletion, and a run': at(false, 0, 'alice delete', 'op crash', 'alice run', 'bob run B'),
}

/** What callers and an operator may do; the owner may run and delete twice. A run after a deletion revives the thread. */
const OPERATIONS: readonly Act[] = [
  ...['alice run', 'alice run', 'alice delete', 'alice delete', 'bob run', 'bob read', 'carol run'],
  ...['op grant', 'op ungrant', 'op transfer', 'op prune', 'op reload', 'op revoke', 'op crash'],
].map((text) => ({ ...act(text), gateway: 'any' }))

/**
 * Every set of so many operations, at either of two gateways: up to three callers and an operator. In each, a second may pass.
 * Bob has a grant, unless it is granted first.
 */
export function combinations(size: number): Readonly<Record<string, Scenario>> {
  const all: Record<string, Scenario> = {}
  const choose = (from: number, acts: readonly Act[]): void => {
    if (acts.length === size) {
      if (acts.every(({ user }) => user === 'op')) return
      const operations = new Set(acts.map(({ what }) => what))
      const granted = operations.has('ungrant') || !operations.has('grant')
      all[acts.map(({ user, what }) => `${user} ${what}`).join(', ')] = { acts, beginning: { granted, seconds: 1 } }
      return
    }
    for (const [at, next] of OPERATIONS.entries()) if (at >= from) choose(at + 1, [...acts, next])
  }
  choose(0, [])
  return all
}

/** The histories that are taken: a few operations each, with what is there at the beginning. */
import type { Act, Beginning, Operation } from './world.ts'

/** Operations at once. */
export interface Scenario {
  readonly acts: readonly Act[]
  readonly beginning: Beginning
}

function act(text: string): Act {
  const [user = '', what = '', gateway = 'A'] = text.split(' ')
  return { user, what: what as Operation, gateway: gateway as 'A' | 'B' }
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

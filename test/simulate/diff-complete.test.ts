/** A comparison finds what somebody would notice: for made-up policies and callers whom it knows nothing of. */
import { test } from 'tap'
import type { Json } from '../../src/core/json/read.ts'
import { isRefusal } from '../../src/core/reasons.ts'
import { compare } from '../../src/tools/simulate/diff.ts'
import { agentsOf, cellsOf, isAlike, verdictOf } from '../../src/tools/simulate/matrix.ts'
import { makeUser } from '../../src/tools/simulate/made-up-user.ts'
import { accepted } from '../../testing/support/configuration.ts'
import { sampleOf } from '../../testing/support/sample.ts'
import { altered, drawing, madePolicy, madeRules, WORDS, type Draw } from './generated.ts'

const issuers = Object.fromEntries(
  WORDS.issuers.map((key) => [key, { issuer: `https://${key}.example.com/`, audiences: ['chat'], algorithms: ['RS256'] }]),
)
const { config } = accepted({ 'authentication.issuers': issuers })

/** Somebody with some of all that rules could ask for. */
function stranger(draw: Draw) {
  const claims = WORDS.pointers.flatMap((at): [string, Json][] => {
    if (draw.chance(40)) return []
    const value: Json = draw.one<Json>([...WORDS.values, 'other', 0, 3, false, ['acme'], [1, 2], null])
    return [[at, value]]
  })
  const made = makeUser(
    draw.one(WORDS.issuers),
    'stranger',
    { roles: draw.some(WORDS.roles), permissions: draw.some(WORDS.permissions), claims },
    config,
  )
  if (isRefusal(made)) throw new Error(made.reason)
  return made
}

void test('whatever a caller would notice is told', (t) => {
  let noticed = 0
  const missed: unknown[] = []
  for (const seed of sampleOf([...Array(120).keys()], 4)) {
    const draw = drawing(seed)
    const rules = madeRules(draw)
    const [before, after] = [madePolicy(rules), madePolicy(altered(rules, draw))]
    const agents = agentsOf([before, after])
    const cells = cellsOf(agents, { sharing: true })
    const told = compare(before, after, config).differences
    for (let turn = 0; turn < 30; turn += 1) {
      const principal = stranger(draw)
      for (const cell of cells) {
        const [one, other] = [before, after].map((policy) => verdictOf(cell, principal, policy, agents, config))
        if (isAlike(one!, other!)) continue
        noticed += 1
        const { route, ids } = cell.descriptor
        // Where grants count nowhere, what was granted is one more foreign thread.
        const isShared = cell.ownership?.startsWith('shared') === true
        const thread = isShared && !before.rules.sharing && !after.rules.sharing ? 'foreign' : cell.ownership
        const isTold = told.some(
          ({ routes, threads, agents: named, before: was, after: is }) =>
            routes.includes(`${route.method} ${route.id}`) &&
            (thread === null || threads.includes(thread)) &&
            (ids.agentId === undefined || named.includes(ids.agentId)) &&
            was.outcome === one!.outcome &&
            is.outcome === other!.outcome,
        )
        if (!isTold) missed.push({ seed, route: route.id, ids, ownership: cell.ownership, principal, one, other })
      }
    }
  }
  t.ok(noticed > 500, `${noticed} differences were noticed`)
  t.equal(missed.length, 0, JSON.stringify(missed[0]))
  t.end()
})

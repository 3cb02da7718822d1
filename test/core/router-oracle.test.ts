/**
 * Targets that were sent to the real runtime's router, with what it resolved (runtime 1.75.0, four adapters). Whatever
 * the gateway lets through must be what the runtime would have read in the same target; what has another reading is
 * refused (docs/contributing/invariants.md, 2; docs/contributing/threat-model.md).
 */
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { classify } from '../../src/core/route/classify.ts'
import { QUERY_NAMES } from '../../src/core/route/all-routes.ts'
import { findMount, readTarget } from '../../src/core/route/target.ts'

type Resolved = { method: string; agentId?: string; threadId?: string } | number
interface Case {
  readonly label: string
  readonly target: string
  readonly node: Record<string, Resolved>
}

const { cases } = JSON.parse(readFileSync(new URL('../fixtures/router-oracle.json', import.meta.url), 'utf8')) as {
  cases: Case[]
}

/** What the gateway makes of a request line: a route and its ids, or null if it refuses. */
function read(method: string, raw: string) {
  const target = readTarget(raw, QUERY_NAMES)
  if (target.outcome === 'refused') return null
  const place = findMount([{ publicPath: '/api/copilotkit' }], target)
  if (place === null) return null
  const found = classify(method, place.segments, target.query)
  return found.outcome === 'refused' ? null : { method: found.route.id, ...found.ids }
}

void test('nothing is let through that the real router reads in another way', (t) => {
  let permitted = 0
  for (const { label, target, node } of cases) {
    for (const [method, resolved] of Object.entries(node)) {
      const mine = read(method, target)
      if (mine === null) continue
      permitted += 1
      // The memory routes were switched off where the answers were recorded: their 404 is no other reading.
      if (mine.method.startsWith('memories/')) continue
      t.same(mine, resolved, `${label}: ${method} ${target}`)
    }
  }
  t.ok(permitted >= 10, `${permitted} targets were let through: the test compares something`)
  t.end()
})

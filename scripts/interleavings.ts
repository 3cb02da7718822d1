/** Takes every order in which a few operations can happen, and says how many there were: testing/interleavings. */
import { parseArgs } from 'node:util'
import { explore } from '../testing/interleavings/explore.ts'
import { combinations, SCENARIOS } from '../testing/interleavings/histories.ts'
import { postgresEngine } from '../testing/interleavings/postgres-engine.ts'
import { sqliteEngine } from '../testing/interleavings/sqlite-engine.ts'
import { makeTemplate } from '../testing/interleavings/world.ts'
import { startServer } from '../testing/support/postgres-server.ts'

const HELP = `usage: npm run interleavings -- [--store sqlite|postgres] [--operations N] [--only TEXT] [--most N]

Runs the real gate, claims, store, review and reload on a virtual clock and a virtual runtime, and takes every order in which
a few operations can happen. After each step it looks whether anybody was given or let do what they had no access to, and
whether a claim was lost.

  --store NAME    sqlite, which is the default, or postgres: a server of its own, in which each statement is a step
  --operations N  every set of so many operations (2, 3 or 4) instead of the named scenarios, at two gateways
  --only TEXT     only scenarios whose names contain this
  --most N        histories of a scenario at most, those included that came to a known state; by default 100000.
                  Those with the fewest unusual steps come first

Exit code: 0 fine, 1 something was found, 2 wrong usage.`

const options = (() => {
  try {
    return parseArgs({
      options: {
        store: { type: 'string' },
        operations: { type: 'string' },
        only: { type: 'string' },
        most: { type: 'string' },
        help: { type: 'boolean' },
      },
    }).values
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${HELP}`)
    process.exit(2)
  }
})()
if (options.help === true) {
  console.log(HELP)
  process.exit(0)
}
const most = Number(options.most ?? 100_000)
if (!Number.isInteger(most) || most < 1) {
  console.error(`--most is no number of histories\n\n${HELP}`)
  process.exit(2)
}
const { operations } = options
if (operations !== undefined && !['2', '3', '4'].includes(operations)) {
  console.error(`--operations is none of 2, 3 and 4\n\n${HELP}`)
  process.exit(2)
}
const kind = options.store ?? 'sqlite'
if (kind !== 'sqlite' && kind !== 'postgres') {
  console.error(`--store is neither sqlite nor postgres\n\n${HELP}`)
  process.exit(2)
}
const server = kind === 'postgres' ? await startServer({}) : null
const engine = server === null ? sqliteEngine() : postgresEngine(`postgres://postgres@127.0.0.1:${server.port}/postgres`)
const template = makeTemplate(await engine)
const sum = { scenarios: 0, complete: 0, histories: 0, pruned: 0, states: 0, found: 0 }
const scenarios = operations === undefined ? SCENARIOS : combinations(Number(operations))
console.log('histories   pruned   states   scenario')
for (const [name, { acts, beginning }] of Object.entries(scenarios)) {
  if (options.only !== undefined && !name.includes(options.only)) continue
  const { histories, pruned, states, isPartial, violations } = await explore(template, acts, beginning, most)
  const [a, b, c] = [histories, pruned, states].map((count) => String(count).padStart(9))
  console.log(`${a}${b}${c}   ${name}${isPartial && violations.length === 0 ? ' (not all: --most)' : ''}`)
  for (const violation of violations) console.log(`  FOUND: ${violation}`)
  sum.scenarios += 1
  sum.complete += isPartial ? 0 : 1
  sum.histories += histories
  sum.pruned += pruned
  sum.states += states
  sum.found += violations.length
}
const { scenarios: count, complete, found } = sum
const [a, b, c] = [sum.histories, sum.pruned, sum.states].map((value) => String(value).padStart(9))
console.log(`${a}${b}${c}   all ${count} scenarios, ${complete} of them with every history; violations: ${found}`)
await template.remove()
await server?.remove()
process.exitCode = found === 0 ? 0 : 1

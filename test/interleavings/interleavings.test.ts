/**
 * Every order in which a few operations can happen, on the real gate, claims, store, review and reload: at no moment is
 * somebody given or let do what they have no access to, has a thread two owners, or does an owner inherit what others wrote.
 * Here each scenario has a bound; `npm run interleavings` takes all of its histories.
 */
import { test } from 'tap'
import { explore } from './explore.ts'
import { SCENARIOS } from './histories.ts'
import { makeTemplate } from './world.ts'

/** Histories of one scenario, those included that came to a known state. */
const MOST = 150

void test('a few operations at once, in every order', async (t) => {
  const template = await makeTemplate()
  t.teardown(() => template.remove())
  for (const [name, { acts, beginning }] of Object.entries(SCENARIOS)) {
    const { histories, states, violations } = await explore(template, acts, beginning, MOST)
    t.same(violations, [], name)
    t.ok(histories > 0 && states > 10, `${name}: ${histories} histories, ${states} states`)
  }
})

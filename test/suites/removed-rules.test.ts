/** The rules that `npm run removed-rules` takes out are in the sources, so that a change of a source changes them too. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { RULES, withoutRule } from '../../testing/removed-rules.ts'
import { ROOT } from './suites.ts'

for (const rule of RULES) {
  void test(`${rule.file}: ${rule.rule}`, async (t) => {
    const text = readFileSync(join(ROOT, 'src', rule.file), 'utf8')
    t.doesNotThrow(() => withoutRule(text, rule))
  })
}

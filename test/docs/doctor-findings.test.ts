/** docs/reference/doctor-findings.md: its tables have every check of the doctor, and nothing else. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { code, page, ROOT, rows } from './markdown.ts'

const SOURCE = globSync('src/{tools/doctor/*,cli/doctor}.ts', { cwd: ROOT })
  .map((file) => readFileSync(join(ROOT, file), 'utf8'))
  .join('\n')

void test('every check has its rows', (t) => {
  const names = Array.from(SOURCE.matchAll(/\b(?:name|check):? ?=? '([a-z]+\.[a-z]+)'/g), ([, name = '']) => name)
  // Checks of which the source puts the name together.
  const parts = ['upstream', 'agent'].flatMap((part) => [`${part}.reachable`, `${part}.clock`])
  t.match(SOURCE, /name: `\$\{part\}\.reachable`/)
  const checks = new Set(['configuration', ...names, ...parts])
  t.ok(checks.size > 20)
  const written = new Set(rows(page('docs/reference/doctor-findings.md').text).map(([name]) => code(name)))
  t.same([...written].toSorted(), [...checks].toSorted())
  t.end()
})

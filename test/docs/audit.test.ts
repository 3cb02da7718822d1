/** docs/reference/audit.md: its tables have every field of an audit line, and nothing else. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { call, runInput } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { events } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'
import { code, page, ROOT, rows, section } from './markdown.ts'

const PAGE = page('docs/reference/audit.md')

const fields = (heading: string) => rows(section(PAGE, heading)).map(([name]) => code(name))

void test('a line has the fields of the page, in order', async (t) => {
  const gate = await gated(t, events(), { config: { audit: { to: 'file', file: './audit.jsonl' } } })
  await call(`${gate.base}/agent/default/run`, { token: gate.alice, body: runInput('t1') })
  const file = join(gate.gateway.folder, 'audit.jsonl')
  await until(() => readFileSync(file, 'utf8').endsWith('\n'))
  const line = JSON.parse(readFileSync(file, 'utf8').split('\n')[0]!) as Record<string, object>
  t.same(fields('Fields'), Object.keys(line))
  const facts = Object.keys(line['facts']!)
  t.same(fields('facts').slice(0, facts.length), facts)
  // Only a line about a token that could not be read in full has this one.
  const principal = fields('principal').filter((name) => name !== 'unreadable')
  t.same(principal, Object.keys(line['principal']!))
})

void test('every relation to a thread has its row', (t) => {
  const source = readFileSync(join(ROOT, 'src/audit/line.ts'), 'utf8')
  const [, type = ''] = /type RecordWord =([^]*?)\n\n/.exec(source) ?? []
  const words = Array.from(type.matchAll(/'([\w-]+)'/g), ([, word]) => word)
  t.ok(words.length > 10)
  const named = rows(section(PAGE, 'facts')).flatMap(([cell = '']) =>
    Array.from(cell.matchAll(/`([\w-]+)`/g), ([, name]) => name),
  )
  for (const word of words) t.ok(named.includes(word), `${word}`)
  t.end()
})

/** Files of operators, read: what a parser would print of them is not for stderr. */
import { writeFileSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { readDocument } from '../../src/document/document.ts'
import { Sources } from '../../src/document/sources.ts'

// Found by the fuzz.
void test('a key that is a mapping is a key of its text, and nothing of it is printed', async (t) => {
  const warnings = t.capture(process, 'emitWarning')
  const file = `${t.testdir()}/a.yaml`
  writeFileSync(file, '? {secret: hunter2}\n: 1\n')
  const read = readDocument(new Sources(), file)
  await setImmediate()
  t.match(read, { ok: true, value: { value: { '{ secret: hunter2 }': 1 } } })
  t.same(warnings(), [])
})

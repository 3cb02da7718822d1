/** A function that the threat model cites beside a source file is in that file. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { test } from 'tap'

void test('what the threat model cites is there', (t) => {
  const folder = resolve(import.meta.dirname, '../../docs')
  const text = readFileSync(resolve(folder, 'threat-model.md'), 'utf8')
  for (const [, file = '', names = ''] of text.matchAll(/\]\((\.\.\/src\/[^)#\s]+)\)((?:,? ?`\w+`)+)/g)) {
    const source = readFileSync(resolve(folder, file), 'utf8')
    for (const [, name = ''] of names.matchAll(/`(\w+)`/g)) t.match(source, new RegExp(`\\b${name}\\b`), `${name} in ${file}`)
  }
  t.end()
})

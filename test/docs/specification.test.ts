/** docs/specification.md names code and tests that are there. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { links, page, ROOT, rows } from './markdown.ts'

const specification = page('docs/specification.md')

/** A link with what is said of it up to the next one. */
const parts = (cell: string) => cell.split(/(?=\[)/).filter((part) => part.startsWith('['))

for (const [rule = '', short = '', code = '', held = ''] of rows(specification.text)) {
  void test(`${rule}: ${short}`, (t) => {
    for (const part of [...parts(code), ...parts(held)]) {
      const [link] = links(specification.name, part)
      const text = readFileSync(join(ROOT, link?.path ?? ''), 'utf8')
      for (const [, name = ''] of part.matchAll(/`([^`]+)`/g)) {
        t.match(text, new RegExp(`(?:function|const) ${name}\\b|^ {2}${name}\\(`, 'm'), `${link?.path} has ${name}`)
      }
      for (const [, name = ''] of part.matchAll(/"([^"]+)"/g)) t.ok(text.includes(name), `${link?.path} has a test "${name}"`)
    }
    t.end()
  })
}

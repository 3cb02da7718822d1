/** The pages that say which code holds a rule and which test shows it name code and tests that are there. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { links, page, ROOT, rows } from './markdown.ts'

/** A link with what is said of it up to the next one. */
const parts = (cell: string) => cell.split(/(?=\[)/).filter((part) => part.startsWith('['))

for (const { name, text } of [page('docs/contributing/specification-map.md'), page('docs/contributing/threat-model.md')]) {
  for (const cells of rows(text).filter((row) => row.length > 2)) {
    void test(`${name}: ${cells.slice(0, -2).join(': ')}`, (t) => {
      for (const part of cells.slice(-2).flatMap(parts)) {
        const [link] = links(name, part)
        const source = readFileSync(join(ROOT, link?.path ?? ''), 'utf8')
        for (const [, code = ''] of part.matchAll(/`([^`]+)`/g)) {
          t.match(source, new RegExp(`(?:function\\*?|const|class) ${code}\\b|^ {2}${code}\\(`, 'm'), `${link?.path} has ${code}`)
        }
        for (const [, said = ''] of part.matchAll(/"([^"]+)"/g)) t.ok(source.includes(said), `${link?.path} has a test "${said}"`)
      }
      t.end()
    })
  }
}

/** No link of the documentation leads nowhere. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { anchors, links, page, pages, prose, ROOT } from './markdown.ts'

for (const one of pages()) {
  void test(`the links of ${one.name}`, (t) => {
    for (const { path, fragment } of links(one.name, prose(one))) {
      t.ok(existsSync(join(ROOT, path)), path)
      if (fragment !== undefined) t.ok(anchors(page(path)).includes(fragment), `${path}#${fragment}`)
    }
    t.end()
  })
}

void test('a reader who starts at the README can reach every page', (t) => {
  const reached = new Set(['README.md'])
  for (const name of reached) {
    for (const { path } of links(name, page(name).text))
      if (path.endsWith('.md') && existsSync(join(ROOT, path))) reached.add(path)
  }
  for (const { name } of pages()) t.ok(reached.has(name), name)
  t.end()
})

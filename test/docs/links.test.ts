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

void test('every page of docs/ can be reached from the README', (t) => {
  const linked = links('README.md', page('README.md').text).map(({ path }) => path)
  for (const { name } of pages()) if (name !== 'README.md') t.ok(linked.includes(name), name)
  t.end()
})

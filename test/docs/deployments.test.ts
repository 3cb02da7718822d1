/** docs/how-to/connect/upstreams.md: each row has a ready configuration, and a test that starts a gateway from it. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { links, page, ROOT, rows } from './markdown.ts'

const PAGE = 'docs/how-to/connect/upstreams.md'

/** The rows of the table: what each links to, in order. Rows of other tables lead to no test. */
const ROWS = rows(page(PAGE).text)
  .map((cells) => links(PAGE, cells.join(' | ')).map(({ path }) => path))
  .filter((paths) => ['examples/deployments/', 'test/'].every((start) => paths.some((path) => path.startsWith(start))))

void test('every ready configuration stands in the table, and nothing else does', (t) => {
  const listed = ROWS.flatMap((paths) => paths.filter((path) => path.startsWith('examples/deployments/')))
  const there = readdirSync(join(ROOT, 'examples/deployments')).map((name) => `examples/deployments/${name}/threadwarden.yaml`)
  t.same([...listed].sort(), there.sort())
  t.end()
})

void test('the test of a row starts the gateway from its configuration', (t) => {
  for (const paths of ROWS) {
    const name = paths.find((path) => path.startsWith('examples/deployments/'))?.split('/')[2] ?? ''
    const tests = paths.filter((path) => path.startsWith('test/'))
    t.ok(tests.length > 0, name)
    // A scene beside it may be what starts it.
    const folder = join(ROOT, tests[0] ?? '', '..')
    const texts = readdirSync(folder).map((file) => readFileSync(join(folder, file), 'utf8'))
    t.ok(
      texts.some((text) => text.includes(`'${name}'`) || text.includes(`/deployments/${name}/`)),
      `${tests[0]} starts ${name}`,
    )
  }
  t.end()
})

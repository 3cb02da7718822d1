/** The website has every page, a sidebar that leads to each, and links that lead where they do on GitHub. */
import { test } from 'tap'
import { sidebarOf, sitePages, slugOf, targetOf, type SidebarItem } from '../../site/pages.ts'
import { anchors, pages, ROOT } from './markdown.ts'

const PAGES = sitePages(ROOT)

void test('every page is one of the website', (t) => {
  t.same(
    [...PAGES.keys()].toSorted(),
    pages().map(({ name }) => name),
  )
  t.equal(PAGES.get('docs/README.md')?.path, 'index.md', 'the home page')
  t.end()
})

void test('the sidebar leads to every page but the home page', (t) => {
  const links = (items: readonly SidebarItem[]): readonly string[] =>
    items.flatMap(({ link, items: inner = [] }) => [...(link === undefined ? [] : [link]), ...links(inner)])
  const all = Array.from(PAGES.values(), ({ path }) => `/${path.replace(/\.md$/, '')}`).filter((path) => path !== '/index')
  t.same(links(sidebarOf(ROOT)).toSorted(), all.toSorted())
  t.end()
})

void test('links', (t) => {
  const from = (link: string, repository?: string) => targetOf('docs/reference/errors.md', link, PAGES, repository)
  t.same(from('policy.md#a'), { kind: 'page', href: '/reference/policy.md#a' })
  t.same(from('../README.md'), { kind: 'page', href: '/index.md' })
  t.same(from('../../README.md#see-it'), { kind: 'page', href: '/project/overview.md#see-it' })
  t.same(from('../../src/cli.ts'), { kind: 'file', path: 'src/cli.ts' })
  t.same(from('../../src/', 'https://git.example/a/b/blob/main'), {
    kind: 'repository',
    href: 'https://git.example/a/b/blob/main/src',
  })
  for (const link of ['https://a.example/b.md', 'mailto:a@b.example', '#here', '/reference/policy'])
    t.equal(from(link), null, link)
  t.end()
})

void test('fragments are those that the links of the documentation use', (t) => {
  const heading = "2. What's `unknownThread`: a_b & “c”?"
  t.same(anchors({ name: 'a', text: `## ${heading}\n` }), [slugOf(heading)])
  t.end()
})

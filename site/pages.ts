/** The pages of the website: which Markdown files they are, their addresses and their order in the sidebar. */
import { readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'

/** Pages outside of docs/, by their file in the repository. */
const PROJECT: Readonly<Record<string, string>> = {
  'README.md': 'project/overview.md',
  'CONTRIBUTING.md': 'project/contributing.md',
  'SECURITY.md': 'project/security.md',
  'CHANGELOG.md': 'project/changelog.md',
}

/** Folders of docs/ in the order of the sidebar. A folder that is not named here comes last, under its own name. */
const FOLDERS: readonly (readonly [folder: string, title: string])[] = [
  ['tutorials', 'Tutorials'],
  ['how-to', 'How-to guides'],
  ['how-to/deploy', 'Deploy'],
  ['how-to/connect', 'Connect'],
  ['how-to/authorize', 'Authorize'],
  ['how-to/operate', 'Operate'],
  ['reference', 'Reference'],
  ['explanation', 'Explanation'],
  ['contributing', 'Contributing'],
  ['contributing/decisions', 'Decisions'],
]

/** A page of the website. */
export interface SitePage {
  /** The file, as a path below the repository. */
  readonly file: string
  /** The page as VitePress names it: `reference/errors.md`. */
  readonly path: string
  readonly title: string
}

/** An entry of the sidebar, in VitePress's form. */
export interface SidebarItem {
  text: string
  link?: string
  items?: SidebarItem[]
  collapsed?: boolean
}

/** Every page, by its file. */
export function sitePages(root: string): ReadonlyMap<string, SitePage> {
  const files = readdirSync(`${root}/docs`, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.md'))
  const inDocs = files
    .map((name) => name.replaceAll('\\', '/'))
    .map((name): readonly [string, string] => [`docs/${name}`, name.replace(/(^|\/)README\.md$/, '$1index.md')])
  const pairs = [...inDocs, ...Object.entries(PROJECT)]
  const pages = new Map<string, SitePage>()
  const taken = new Set<string>()
  for (const [file, path] of pairs.toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    if (taken.has(path)) throw new Error(`two pages have the address ${path}: ${file} is one of them`)
    taken.add(path)
    pages.set(file, { file, path, title: titleOf(readFileSync(`${root}/${file}`, 'utf8'), path) })
  }
  return pages
}

function titleOf(text: string, path: string): string {
  const [, heading = posix.basename(path, '.md')] = /^# (.+)$/m.exec(text) ?? []
  return heading.replaceAll('`', '')
}

/** The sidebar: the folders of docs/, each with its pages in the order in which docs/README.md links to them. */
export function sidebarOf(root: string): SidebarItem[] {
  const pages = sitePages(root)
  const linked = Array.from(readFileSync(`${root}/docs/README.md`, 'utf8').matchAll(/\]\(([^)#\s]+\.md)/g), ([, target = '']) =>
    posix.join('docs', target),
  )
  const place = ({ file }: SitePage): number => {
    const at = linked.indexOf(file)
    return at === -1 ? linked.length : at
  }
  const sorted = [...pages.values()].toSorted((a, b) => place(a) - place(b))
  const inDocs = sorted.filter(({ file }) => file.startsWith('docs/'))
  const folders = [...new Set(inDocs.flatMap(({ path }) => parents(posix.dirname(path))))]
  const known = FOLDERS.map(([folder]) => folder)
  const order = [
    ...known.filter((folder) => folders.includes(folder)),
    ...folders.filter((folder) => !known.includes(folder)).toSorted(),
  ]
  const itemsOf = (parent: string): SidebarItem[] => [
    ...inDocs
      .filter(({ path }) => posix.dirname(path) === parent && posix.basename(path) !== 'index.md' && path !== 'moved.md')
      .map(linkTo),
    ...order.filter((folder) => posix.dirname(folder) === parent).map((folder) => group(folder, itemsOf(folder))),
  ]
  const project = sorted.filter(({ file }) => Object.hasOwn(PROJECT, file))
  const moved = inDocs.filter(({ path }) => path === 'moved.md')
  return [...itemsOf('.'), { text: 'Project', collapsed: true, items: [...project, ...moved].map(linkTo) }]
}

/** A folder and those that it is in, without the top. */
function parents(folder: string): readonly string[] {
  return folder === '.' ? [] : [...parents(posix.dirname(folder)), folder]
}

function linkTo({ path, title }: SitePage): SidebarItem {
  return { text: title, link: `/${path.replace(/\.md$/, '')}` }
}

function group(folder: string, items: SidebarItem[]): SidebarItem {
  const name = posix.basename(folder)
  const text = FOLDERS.find(([known]) => known === folder)?.[1] ?? name.charAt(0).toUpperCase() + name.slice(1)
  // Readers who change the gateway look for these pages; others have no need of so long a list.
  return { text, items, ...(folder.startsWith('contributing') ? { collapsed: true } : {}) }
}

/** Where a link of a page leads. */
export type Target =
  | { readonly kind: 'page'; readonly href: string }
  | { readonly kind: 'repository'; readonly href: string }
  /** A file of the repository, where the website has no address for it. */
  | { readonly kind: 'file'; readonly path: string }

/**
 * Where a relative link leads that works on GitHub.
 * @param repository the address of the repository's files, like `https://github.com/OWNER/NAME/blob/main`, if there is one
 */
export function targetOf(
  file: string,
  link: string,
  pages: ReadonlyMap<string, SitePage>,
  repository: string | undefined,
): Target | null {
  if (/^(?:[a-z][a-z\d+.-]*:|\/|#)/i.test(link)) return null
  const [path = '', ...fragment] = link.split('#')
  const hash = fragment.length === 0 ? '' : `#${fragment.join('#')}`
  const named = posix.join(posix.dirname(file), decodeURI(path)).replace(/\/$/, '')
  const page = pages.get(named)
  if (page !== undefined) return { kind: 'page', href: `/${page.path}${hash}` }
  return repository === undefined ? { kind: 'file', path: named } : { kind: 'repository', href: `${repository}/${named}${hash}` }
}

/** The fragment of a heading, as GitHub makes it. */
export function slugOf(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-')
}

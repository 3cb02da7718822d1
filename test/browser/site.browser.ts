/** The documentation as a website, as `npm run docs:build` built it: every page, its links and its diagrams, in Chromium. */
import { globSync, mkdtempSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium, type Browser, type Page as Window } from 'playwright-core'
import { test, type Test } from 'tap'
import { listen, stop } from '../../examples/http.ts'
import { sitePages } from '../../site/pages.ts'
import { ROOT } from '../docs/markdown.ts'
import { ARGUMENTS, CHROMIUM, patient } from './scene.ts'

const BUILT = fileURLToPath(new URL('../../site/dist', import.meta.url))

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
}

/** Serves the website as any server of files does. */
async function startSite(t: Test): Promise<string> {
  const server = createServer((request, response) => {
    const path = decodeURI(new URL(request.url ?? '/', 'http://site').pathname)
    const file = join(BUILT, path.endsWith('/') ? `${path}index.html` : path)
    if (statSync(file, { throwIfNoEntry: false })?.isFile() !== true) response.writeHead(404).end()
    else response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'text/plain' }).end(readFileSync(file))
  })
  const { origin } = await listen(server, 0, '127.0.0.1')
  t.teardown(() => stop(server))
  return origin
}

/** What is on a page. */
interface Seen {
  readonly path: string
  readonly title: string
  readonly ids: readonly string[]
  readonly links: readonly string[]
  readonly diagrams: number
}

/** Opens a page and waits until its diagrams are drawn. */
async function open(window: Window, origin: string, path: string): Promise<Seen> {
  await window.goto(`${origin}/${path}`, { waitUntil: 'load' })
  const source = readFileSync(join(BUILT, path), 'utf8')
  const expected = source.split('class="mermaid-source"').length - 1
  await window
    .locator('.mermaid-diagram > svg')
    .nth(Math.max(0, expected - 1))
    .waitFor({ state: expected === 0 ? 'detached' : 'visible' })
  const values = (selector: string, name: 'id' | 'href'): Promise<readonly string[]> =>
    window
      .locator(selector)
      .evaluateAll((found, key) => found.map((one) => (one as unknown as Record<string, string>)[key]!), name)
  return {
    path,
    title: await window.title(),
    ids: await values('[id]', 'id'),
    links: await values('a[href]', 'href'),
    diagrams: await window.locator('.mermaid-diagram > svg:not([aria-roledescription="error"])').count(),
  }
}

/** A window that remembers what goes wrong in it. */
async function watched(browser: Browser, origin: string, dark = false): Promise<{ window: Window; wrong: string[] }> {
  const window = patient(await browser.newPage({ viewport: { width: 1440, height: 900 }, colorScheme: dark ? 'dark' : 'light' }))
  const wrong: string[] = []
  const note = (what: string): void => void wrong.push(`${new URL(window.url()).pathname}: ${what}`)
  window.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) note(message.text())
  })
  window.on('pageerror', (error) => note(String(error)))
  window.on('response', (response) => {
    if (response.status() >= 400) note(`${response.status()} ${response.url()}`)
  })
  window.on('request', (request) => {
    if (!request.url().startsWith(`${origin}/`) && !/^(?:data|blob):/.test(request.url())) note(`asks for ${request.url()}`)
  })
  return { window, wrong }
}

void test('every page of the website', async (t) => {
  const origin = await startSite(t)
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ARGUMENTS })
  t.teardown(() => browser.close())
  const { window, wrong } = await watched(browser, origin)
  const files = globSync('**/*.html', { cwd: BUILT }).toSorted()
  const paths = files.filter((file) => file !== '404.html')
  t.same(paths, Array.from(sitePages(ROOT).values(), ({ path }) => path.replace(/\.md$/, '.html')).toSorted())

  const seen = new Map<string, Seen>()
  for (const path of paths) seen.set(path, await open(window, origin, path))
  t.same(wrong, [], 'no error in the console, no failed request, and no request to another origin')
  for (const { path, title } of seen.values()) t.match(title, /\S.* \| Threadwarden$|^Threadwarden$/, path)

  const dead = [...seen.values()].flatMap(({ path, links }) =>
    links.flatMap((link) => {
      const { origin: other, pathname, hash } = new URL(link)
      if (other !== origin) return []
      const name = decodeURI(pathname).slice(1)
      const target = seen.get(name === '' || name.endsWith('/') ? `${name}index.html` : name)
      if (target === undefined) return [`${path}: ${link}`]
      return hash === '' || target.ids.includes(decodeURIComponent(hash.slice(1))) ? [] : [`${path}: ${link}`]
    }),
  )
  t.same(dead, [], 'every link leads to a page, and every anchor to a heading')

  for (const { file, path } of sitePages(ROOT).values()) {
    const written = readFileSync(join(ROOT, file), 'utf8').match(/^ *```mermaid$/gm)?.length ?? 0
    t.equal(seen.get(path.replace(/\.md$/, '.html'))?.diagrams, written, `diagrams of ${path}`)
  }

  await t.test('the search finds a key of the configuration', async (t) => {
    await window.goto(`${origin}/index.html`)
    await window.getByRole('button', { name: 'Search' }).first().click()
    await window.getByRole('searchbox').fill('unknownThread')
    await window.locator('#localsearch-list a').first().waitFor()
    t.match(await window.locator('#localsearch-list').innerText(), /unknownThread/)
  })

  await t.test('pictures of the home page, of a diagram, and of both colours', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'threadwarden-site-'))
    const withDiagram = [...seen.values()].find(({ diagrams }) => diagrams > 0)?.path ?? 'index.html'
    await open(window, origin, 'index.html')
    await window.screenshot({ path: join(folder, 'home.png') })
    await open(window, origin, withDiagram)
    await window.locator('.mermaid-diagram').first().scrollIntoViewIfNeeded()
    await window.screenshot({ path: join(folder, 'diagram.png') })
    const dark = await watched(browser, origin, true)
    await open(dark.window, origin, withDiagram)
    await dark.window.locator('.mermaid-diagram').first().scrollIntoViewIfNeeded()
    await dark.window.screenshot({ path: join(folder, 'dark.png') })
    t.same(dark.wrong, [])
    t.comment(`the pictures are in ${folder}`)
  })
})

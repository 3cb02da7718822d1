/** The website: the Markdown files of docs/ and of the top folder, as they are. docs/contributing/documentation.md explains it. */
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig, type DefaultTheme } from 'vitepress'
import { sidebarOf, sitePages, slugOf, targetOf } from '../pages.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '')
const { version, repository } = JSON.parse(readFileSync(`${ROOT}/package.json`, 'utf8')) as {
  readonly version: string
  readonly repository?: string | { readonly url: string }
}

/** The address of the repository: from the environment, or from package.json. Without it there are no links to source files. */
const REPOSITORY = (process.env['DOCS_REPOSITORY'] ?? (typeof repository === 'object' ? repository.url : repository))
  ?.replace(/^git\+/, '')
  .replace(/(?:\.git)?\/?$/, '')
const BRANCH = process.env['DOCS_BRANCH'] ?? 'main'
const BLOB = REPOSITORY === undefined ? undefined : `${REPOSITORY}/blob/${BRANCH}`

const PAGES = sitePages(ROOT)

/** A letter on a square, so that browsers ask for no /favicon.ico. */
const ICON = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#3451b2"/><text x="16" y="23" font-family="sans-serif" font-size="20" font-weight="700" text-anchor="middle" fill="#fff">T</text></svg>',
)}`

const themeConfig: DefaultTheme.Config = {
  nav: [
    { text: 'Tutorial', link: '/tutorials/first-gateway', activeMatch: '^/tutorials/' },
    { text: 'Configuration', link: '/reference/configuration' },
    { text: `v${version}`, link: '/project/changelog' },
  ],
  sidebar: sidebarOf(ROOT),
  outline: { level: [2, 3] },
  search: { provider: 'local' },
  docFooter: { prev: false, next: false },
  ...(REPOSITORY === undefined
    ? {}
    : {
        socialLinks: [{ icon: 'github', link: REPOSITORY }],
        editLink: { pattern: `${REPOSITORY}/edit/${BRANCH}/:path`, text: 'Edit this page' },
      }),
}

export default defineConfig({
  title: 'Threadwarden',
  description: 'An authorization gateway for agent chat runtimes',
  lang: 'en',
  base: (process.env['DOCS_BASE'] ?? '/') as `/${string}/`,
  srcDir: '..',
  srcExclude: ['!(docs)/**/*.md'],
  outDir: fileURLToPath(new URL('../dist', import.meta.url)),
  cacheDir: fileURLToPath(new URL('../node_modules/.cache/vitepress', import.meta.url)),
  rewrites: Object.fromEntries(Array.from(PAGES.values(), ({ file, path }) => [file, path])),
  head: [['link', { rel: 'icon', href: ICON }]],
  themeConfig,
  markdown: {
    anchor: { slugify: slugOf },
    config(md) {
      md.core.ruler.push('repository-links', ({ tokens, env }) => {
        const { path, realPath } = env as { readonly path: string; readonly realPath?: string }
        const file = relative(ROOT, realPath ?? path).replaceAll('\\', '/')
        for (const { children } of tokens) rewriteLinks(children ?? [], file)
      })
      // Pages are Markdown, not Vue templates: `{{` is text.
      for (const rule of ['text', 'code_inline'] as const) {
        const render = md.renderer.rules[rule]!
        md.renderer.rules[rule] = (...args) => render(...args).replaceAll('{{', '&#123;&#123;')
      }
      const fence = md.renderer.rules.fence!
      md.renderer.rules.fence = (tokens, at, options, env, self) => {
        const { info, content } = tokens[at]!
        if (info.trim() !== 'mermaid') return fence(tokens, at, options, env, self)
        return `<Mermaid source="${encodeURIComponent(content)}" />\n`
      }
    },
  },
  vite: {
    publicDir: false,
    plugins: [
      {
        // Pages become modules outside of this folder, which would look for Vue in the checkout.
        name: 'vue-of-this-folder',
        enforce: 'pre',
        configResolved({ optimizeDeps }) {
          // The same for packages that the server would look for in advance: it finds them when a page asks for them.
          optimizeDeps.include = optimizeDeps.include?.filter((name) => !name.startsWith('vitepress > ')) ?? []
        },
        async resolveId(id, importer, options) {
          if (!/^vue(?:\/|$)/.test(id) || importer?.startsWith(`${ROOT}/site/`) === true) return null
          return this.resolve(id, `${ROOT}/site/pages.ts`, { ...options, skipSelf: true })
        },
      },
    ],
    // Mermaid is loaded on pages that have a diagram only.
    build: { chunkSizeWarningLimit: 4_000 },
  },
})

type Tokens = NonNullable<
  Parameters<NonNullable<import('vitepress').MarkdownRenderer['core']['process']>>[0]['tokens'][number]['children']
>

/** Makes relative links absolute ones of the website or of the repository; a file without an address becomes plain text. */
function rewriteLinks(tokens: Tokens, file: string): void {
  let isPlain = false
  for (const [at, token] of tokens.entries()) {
    if (token.type === 'link_close' && isPlain) {
      isPlain = false
      Object.assign(token, { type: 'html_inline', content: '</span>' })
    }
    const href = token.type === 'link_open' ? token.attrGet('href') : null
    const target = href === null ? null : targetOf(file, href, PAGES, BLOB)
    if (target === null) continue
    if (target.kind !== 'file') token.attrSet('href', target.href)
    else {
      isPlain = true
      const name = tokens[at + 1]?.content ?? ''
      const title = target.path.endsWith(name) ? '' : ` title="${target.path.replaceAll('"', '&quot;')}"`
      Object.assign(token, { type: 'html_inline', content: `<span class="repository-file"${title}>` })
    }
  }
}

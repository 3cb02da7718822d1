/** The documentation as the tests read it: pages, links, tables and code blocks. */
import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The folder of the repository. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** A page. */
export interface Page {
  /** Its path below the repository. */
  readonly name: string
  readonly text: string
}

/** A page by its path below the repository. */
export function page(name: string): Page {
  return { name, text: readFileSync(join(ROOT, name), 'utf8') }
}

/** Every page: those at the top of the repository and those below docs/. */
export function pages(): readonly Page[] {
  return globSync(['*.md', 'docs/**/*.md'], { cwd: ROOT }).toSorted().map(page)
}

/** What stands in fences of one language: only the bare word counts, so ```yaml kubernetes is another. */
export function blocks({ text }: Page, language: string): readonly string[] {
  return Array.from(text.matchAll(/^```(.*)\n([^]*?)^```$/gm), ([, info = '', code = '']) => ({ info: info.trim(), code }))
    .filter(({ info }) => info === language)
    .map(({ code }) => code)
}

/** A page without its code blocks. */
export function prose({ text }: Page): string {
  return text.replaceAll(/^```[^]*?^```$/gm, '')
}

/** The cells of every table row of a page or a part of it, without the heads. */
export function rows(text: string): readonly (readonly string[])[] {
  const lines = text.split('\n')
  return lines
    .filter((line, at) => [line, lines[at + 1]].every((one) => !one?.startsWith('| ---')) && line.startsWith('| '))
    .map((line) =>
      line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim()),
    )
}

/** The part of a page below a heading, up to the next of the same level. */
export function section({ name, text }: Page, heading: string): string {
  const [, after] = text.split(`\n## ${heading}\n`)
  if (after === undefined) throw new Error(`${name} has no section "${heading}"`)
  return after.split('\n## ')[0] ?? ''
}

/** What stands in a cell between backticks, or null if the cell is anything else. */
export function code(cell: string | undefined): string | null {
  return /^`([^`]+)`$/.exec(cell ?? '')?.[1] ?? null
}

/** A link to a file of the repository. */
export interface Link {
  readonly words: string
  /** Path below the repository, without the fragment. */
  readonly path: string
  readonly fragment: string | undefined
}

/** The links of a text that are no addresses. */
export function links(name: string, text: string): readonly Link[] {
  return Array.from(text.matchAll(/\[([^\]]*)\]\(([^)\s]+)\)/g), ([, words = '', target = '']) => ({ words, target }))
    .filter(({ target }) => !/^[a-z]+:/.test(target))
    .map(({ words, target }) => {
      const [path = '', fragment] = target.split('#')
      return { words, path: path === '' ? name : join(dirname(name), path), fragment }
    })
}

/** The fragments that a page's headings can be reached by. */
export function anchors(one: Page): readonly string[] {
  return Array.from(prose(one).matchAll(/^#+ (.+)$/gm), ([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

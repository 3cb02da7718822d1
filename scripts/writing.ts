/** Checks the texts of the repository: phrases that are not plain, and the length of sentences (docs/contributing/writing.md). */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { runCommand, UsageError } from '../testing/command.ts'
import { SEARCHES } from '../testing/writing/phrases.ts'
import { median, sentences, textOf, wordsOf } from '../testing/writing/texts.ts'

const USAGE = `Checks the texts of the documentation, the sources and the shipped files.

  npm run check:writing [-- OPTIONS] [FILE…]

  --counts   the number of phrases in each file
  --long     sentences of the documentation with more than 25 words
  --medians  the median length of the sentences of each page
`

const ROOT = fileURLToPath(new URL('..', import.meta.url))

const FILES = ['*.md', 'docs/**/*.md', 'src/**/*.ts', 'policies/**/*.yaml', 'config/*.yaml']

const MOST_WORDS_IN_THE_MIDDLE = 18
const LONG = 25

/** A phrase in a file. */
interface Finding {
  readonly file: string
  readonly line: number
  readonly phrase: string
  readonly write: string
}

function findings(file: string): readonly Finding[] {
  const text = textOf(file, readFileSync(join(ROOT, file), 'utf8'))
  return SEARCHES.flatMap(({ search, write }) =>
    Array.from(text.matchAll(search))
      .filter(([found]) => found !== found.toUpperCase())
      .map((match) => ({
        file,
        line: text.slice(0, match.index).split('\n').length,
        phrase: match[0].replaceAll(/\s+(?:(?:\*|\/\/|#|>)\s+)?/g, ' '),
        write,
      })),
  ).toSorted((a, b) => a.line - b.line)
}

function pagesOf(files: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const pages = files.filter((file) => file.startsWith('docs/') && file.endsWith('.md'))
  return new Map(pages.map((file) => [file, sentences(readFileSync(join(ROOT, file), 'utf8'))]))
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      counts: { type: 'boolean', default: false },
      long: { type: 'boolean', default: false },
      medians: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    process.stdout.write(USAGE)
    return 0
  }
  const missing = positionals.find((file) => !existsSync(join(ROOT, file)))
  if (missing !== undefined) throw new UsageError(`there is no file ${missing}`)
  const all = globSync(FILES, { cwd: ROOT }).toSorted()
  const files = positionals.length === 0 ? all : positionals
  const found = new Map(files.map((file) => [file, findings(file)]))
  const say = (text: string): void => void process.stdout.write(`${text}\n`)

  if (values.counts) {
    for (const [file, { length }] of [...found].toSorted((a, b) => b[1].length - a[1].length))
      if (length > 0) say(`${length}\t${file}`)
    return 0
  }
  const pages = pagesOf(files)
  if (values.long) {
    for (const [file, all] of pages) {
      for (const sentence of all)
        if (wordsOf(sentence) > LONG) say(`${file}: ${wordsOf(sentence)} words: ${sentence.replaceAll(/\s+/g, ' ')}`)
    }
    return 0
  }
  if (values.medians) {
    for (const [file, all] of pages) say(`${median(all.map(wordsOf))}\t${file}`)
    return 0
  }
  const judged = [...found.values()].flat()
  for (const { file, line, phrase, write } of judged) say(`${file}:${line}: ${phrase} → ${write}`)
  if (judged.length > 0) say(`${judged.length} phrases that are not plain. docs/contributing/writing.md lists them.`)
  const lengths = [...pages.values()].flat().map(wordsOf)
  const middle = median(lengths)
  const isLong = middle > MOST_WORDS_IN_THE_MIDDLE
  if (isLong)
    say(`The median sentence has ${middle} words, and may have ${MOST_WORDS_IN_THE_MIDDLE}. \`-- --long\` lists long sentences.`)
  return judged.length > 0 || isLong ? 1 : 0
}

await runCommand(main, USAGE)

/** docs/contributing/rules.md: which code holds which rule, and which test notices when it is changed. Made from a run's result. */
import { readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import ts from 'typescript'
import type { Accepted } from './accepted.ts'
import { ROOT, type Mutant } from './run.ts'

/** How many test files are named for a piece of code: those that notice most. */
const MOST_TESTS = 3

interface Declaration {
  readonly name: string
  readonly rule: string
  /** Its lines, counted from 1. */
  readonly from: number
  readonly to: number
}

/** The declarations of a source file, each with the first sentence of what stands over it. */
function declarations(file: string): readonly Declaration[] {
  const text = readFileSync(join(ROOT, file), 'utf8')
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  const header = firstSentence(text)
  const lineOf = (position: number): number => source.getLineAndCharacterOfPosition(position).line + 1
  return source.statements.flatMap((statement) => {
    const name = nameOf(statement)
    if (name === undefined) return []
    const comments = ts.getLeadingCommentRanges(text, statement.getFullStart()) ?? []
    const own = comments.map(({ pos, end }) => text.slice(pos, end)).at(-1)
    const rule =
      own === undefined || (statement === source.statements[0] && own.startsWith('/**\n *')) ? header : firstSentence(own)
    return [{ name, rule, from: lineOf(statement.getStart()), to: lineOf(statement.end) }]
  })
}

function nameOf(statement: ts.Statement): string | undefined {
  if (ts.isFunctionDeclaration(statement) || ts.isClassDeclaration(statement)) return statement.name?.text
  if (!ts.isVariableStatement(statement)) return undefined
  const [declaration] = statement.declarationList.declarations
  return declaration !== undefined && ts.isIdentifier(declaration.name) ? declaration.name.text : undefined
}

/** The first sentence of a comment, in one line. */
function firstSentence(comment: string): string {
  const words = comment
    .replace(/\*\/[^]*$/, '')
    .replaceAll(/^\s*(?:\/\*\*|\*|\/\/)[ ]?/gm, '')
    .split(/\n@|\n\s*\n/)[0]
    ?.replaceAll(/\s+/g, ' ')
    .trim()
  return /^.*?[.:](?= [A-Z]|$)/.exec(words ?? '')?.[0] ?? words ?? ''
}

/**
 * Writes the page.
 * @param accepted survivors with their reasons
 * @param unheld survivors without one
 */
export function writeTable(mutants: readonly Mutant[], accepted: readonly Accepted[], unheld: readonly Mutant[]): void {
  const files = [...new Set(mutants.map((mutant) => mutant.file))].sort()
  const survivors = mutants.filter((mutant) => mutant.survived).length
  const sections = files.map((file) => {
    const rows = declarations(file).flatMap(({ name, rule, from, to }) => {
      const mine = mutants.filter((mutant) => mutant.file === file && mutant.line >= from && mutant.line <= to)
      if (mine.length === 0) return []
      const noticed = mine.filter((mutant) => !mutant.survived).length
      return [`| ${cell(rule)} | [${basename(file)}](../${file}) \`${name}\` | ${noticed} of ${mine.length} | ${tests(mine)} |`]
    })
    return `## ${file}\n\n| Rule | Code | Changes noticed | By |\n| --- | --- | --- | --- |\n${rows.join('\n')}\n`
  })
  const reasoned = [...accepted, ...unheld.map((mutant) => ({ ...mutant, reason: 'Not noticed when this page was made.' }))]
  const spared = reasoned.map(
    ({ file, code, replacement, reason }) =>
      `| [${basename(file)}](../${file}) | \`${cell(code)}\` | \`${cell(replacement)}\` | ${cell(reason)} |`,
  )
  writeFileSync(
    join(ROOT, 'docs/contributing/rules.md'),
    `# Rules, code and tests

Made by \`npm run mutants -- --table\`: not to be edited. The command changes the code of the decision path in every small way it knows (a condition turned round, a word taken out, a bound moved by one) and runs the tests after each change. This page says how many of the changes to each piece of code were noticed, and by which tests first. ${mutants.length} changes were made, ${mutants.length - survivors} were noticed, and the other ${survivors} are listed [below](#changes-that-were-not-noticed); where no test could notice them, with the reason.

${sections.join('\n')}
## Changes that were not noticed

| File | Line | Instead | Why |
| --- | --- | --- | --- |
${spared.join('\n')}
`,
  )
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|')
}

/** The test files that noticed most, the most first; a change that made the program hang or fail to load has none. */
function tests(mutants: readonly Mutant[]): string {
  const counts = new Map<string, number>()
  for (const { killedBy } of mutants) if (killedBy !== undefined) counts.set(killedBy, (counts.get(killedBy) ?? 0) + 1)
  const names = [...counts].sort(([one, most], [other, more]) => more - most || one.localeCompare(other)).slice(0, MOST_TESTS)
  return names.map(([name]) => `[${basename(name)}](../${name})`).join(', ')
}

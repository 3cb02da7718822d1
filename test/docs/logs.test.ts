/** docs/reference/logs.md: every message of the source has its row, with its level and its fields, and no row is without a message. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import ts from 'typescript'
import { code, page, ROOT, rows, section } from './markdown.ts'

const PAGE = page('docs/reference/logs.md')

interface Message {
  readonly file: string
  readonly level: string
  /** Null if a spread hides some of them. */
  readonly fields: readonly string[] | null
  /** `…` for what varies; null if it is no text of this file. */
  readonly text: string | null
}

/** The texts of calls whose message comes from elsewhere, by their file. */
const ELSEWHERE: Readonly<Record<string, readonly string[]>> = {
  'src/cli/serve.ts': [
    "In a container this small, Node's V8 semi-space is 1 MiB and a request costs three times the CPU: set NODE_OPTIONS=…",
    'bodies of more than …',
  ],
  'src/http/admin/grants.ts': ['a thread was shared', 'a grant was taken back'],
}

function textOf(node: ts.Node | undefined): string | null {
  if (node === undefined) return null
  if (ts.isStringLiteralLike(node)) return node.text
  if (ts.isTemplateExpression(node)) return [node.head.text, ...node.templateSpans.map(({ literal }) => literal.text)].join('…')
  if (!ts.isIdentifier(node)) return null
  let found: string | null = null
  const visit = (one: ts.Node): void => {
    if (ts.isVariableDeclaration(one) && one.name.getText() === node.text && one.initializer !== undefined) {
      if (ts.isStringLiteralLike(one.initializer) || ts.isTemplateExpression(one.initializer)) found = textOf(one.initializer)
    }
    ts.forEachChild(one, visit)
  }
  visit(node.getSourceFile())
  return found
}

function fieldsOf(node: ts.Node | undefined): readonly string[] | null {
  if (node === undefined || !ts.isObjectLiteralExpression(node)) return []
  if (node.properties.some((property) => ts.isSpreadAssignment(property))) return null
  return node.properties.map((property) => property.name?.getText() ?? '')
}

function messagesIn(file: string): readonly Message[] {
  const found: Message[] = []
  const source = ts.createSourceFile(file, readFileSync(join(ROOT, file), 'utf8'), ts.ScriptTarget.ESNext, true)
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)) {
      const { name, expression } = node.expression
      if (/^(?:info|warn|error)$/.test(name.text) && /(?:^|\.)log$/.test(expression.getText())) {
        const [first, ...others] = node.arguments
        const message = { file, level: name.text, fields: fieldsOf(first), text: textOf(others.at(-1) ?? first) }
        found.push(message)
      }
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

const MESSAGES = globSync('src/**/*.ts', { cwd: ROOT })
  .toSorted()
  .flatMap(messagesIn)
  .flatMap((message) => {
    const texts =
      message.text === null ? (ELSEWHERE[message.file] ?? [`a message that ${message.file} does not name`]) : [message.text]
    return texts.map((text) => ({ ...message, text }))
  })

const ROWS = rows(section(PAGE, 'Messages')).map(([message, level = '', fields = '']) => ({
  message: code(message) ?? '',
  levels: level.split(', '),
  fields: Array.from(fields.matchAll(/`([^`]+)`/g), ([, field = '']) => field),
}))

/** Whether the text of a row, with `…` for anything, is this message. */
function isMessage(row: string, text: string): boolean {
  const pattern = row.split('…').map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`))
  return new RegExp(`^${pattern.join('.*')}$`).test(text)
}

void test('every message of the source has one row', (t) => {
  t.ok(MESSAGES.length > 50)
  for (const { file, level, text, fields } of MESSAGES) {
    const fitting = ROWS.filter(({ message }) => isMessage(message, text))
    t.equal(fitting.length, 1, `${file}: ${text}`)
    const [row] = fitting
    if (row === undefined) continue
    t.ok(row.levels.includes(level), `${file}: ${text}: ${level}`)
    if (text !== 'configuration' && text !== 'request' && fields !== null) {
      for (const field of fields) t.ok(row.fields.includes(field), `${text}: ${field}`)
    }
  }
  t.end()
})

void test('every row is a message of the source', (t) => {
  for (const { message, fields } of ROWS) {
    // Its level is chosen at run time.
    if (message === 'admin') continue
    const fitting = MESSAGES.filter(({ text }) => isMessage(message, text))
    t.ok(fitting.length > 0, message)
    const known = fitting.map((one) => one.fields)
    if (message === 'configuration' || message === 'request' || known.includes(null)) continue
    for (const field of fields)
      t.ok(
        known.some((names) => names?.includes(field)),
        `${message}: ${field}`,
      )
  }
  t.end()
})

void test('the table of the request line has its fields, in order', (t) => {
  const source = readFileSync(join(ROOT, 'src/http/listeners/app.ts'), 'utf8')
  const [, body = ''] = /^function lineOf\([^]*?\n  return \{\n([^]*?)\n  \}/m.exec(source) ?? []
  const written = Array.from(body.matchAll(/^ {4}(\w+):/gm), ([, name]) => name)
  t.ok(written.length > 10)
  const named = rows(section(PAGE, 'Request lines')).map(([name]) => code(name))
  t.same(named.slice(0, written.length), written)
  t.end()
})

void test('the table of reasons for an early end has each of them', (t) => {
  const source = readFileSync(join(ROOT, 'src/observe/metrics.ts'), 'utf8')
  const [, type = ''] = /type EndReason =([^]*?)\n\n/.exec(source) ?? []
  const reasons = Array.from(type.matchAll(/'([\w-]+)'/g), ([, reason]) => reason)
  t.ok(reasons.length > 3)
  const named = rows(section(PAGE, 'Request lines')).map(([name]) => code(name))
  t.same(named.slice(-reasons.length).toSorted(), reasons.toSorted())
  t.end()
})

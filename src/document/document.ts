/** Reads the YAML or JSON files that operators write, with the place of each error. */
import { isMap, isNode, isPair, isScalar, isSeq, LineCounter, parseDocument, type Document, type ErrorCode } from 'yaml'
import type { z } from 'zod'
import type { Fault } from './fault.ts'
import { nearest, suggestion } from './nearest.ts'
import { unreadable, type Sources } from './sources.ts'

export interface SourceDocument {
  readonly file: string
  readonly text: string
  readonly value: unknown
  readonly lineOf: (path: readonly PropertyKey[]) => number | undefined
}

export type Place = Pick<Fault, 'file' | 'line' | 'path'>

export type Outcome<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly faults: readonly Fault[] }

/** YAML 1.2, which includes JSON. A file that cannot be read is an error of `namedAt`, where another file names it. */
export function readDocument(sources: Sources, file: string, namedAt?: Place): Outcome<SourceDocument> {
  const source = sources.read(file)
  if ('error' in source) {
    const { message, hint } = unreadable(source.error)
    const place = namedAt === undefined ? { file, path: '', message } : { ...namedAt, message: `${file} ${message}` }
    return { ok: false, faults: [{ ...place, hint }] }
  }
  const text = source.bytes.toString('utf8')
  const lines = new LineCounter()
  // The parser would print a key that is not text to stderr, past the log: it may contain a secret.
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: true, logLevel: 'error' })
  if (document.errors.length > 0) {
    return { ok: false, faults: syntaxFaults(file, text, document.errors, lines) }
  }
  try {
    const value: unknown = document.toJS()
    if (isCircular(value)) throw new Error('a value contains itself')
    return { ok: true, value: { file, text, value, lineOf: (path) => lineOf(document, lines, path) } }
  } catch (error) {
    // Aliases are resolved only now: one may have no anchor, or a few may expand to millions of values.
    const message = `is not valid YAML: ${error instanceof Error ? error.message : String(error)}`
    return { ok: false, faults: [{ file, path: '', message }] }
  }
}

/** A value that contains itself through an alias cannot be written as JSON. */
function isCircular(value: unknown, above: readonly unknown[] = []): boolean {
  if (typeof value !== 'object' || value === null) return false
  return above.includes(value) || Object.values(value).some((inner) => isCircular(inner, [...above, value]))
}

/** The line of the key or the list item. For one that is missing, the line of what it is missing from. */
function lineOf(document: Document, lines: LineCounter, path: readonly PropertyKey[]): number | undefined {
  for (let length = path.length; length > 0; length -= 1) {
    const parent = length === 1 ? document.contents : document.getIn(path.slice(0, length - 1), true)
    const offset = offsetOf(parent, path[length - 1])
    if (offset !== undefined) return lines.linePos(offset).line
  }
  const { contents } = document
  return path.length > 0 && isMap(contents) && contents.range ? lines.linePos(contents.range[0]).line : undefined
}

/** A value may begin on a later line than its key. */
function offsetOf(parent: unknown, step: PropertyKey | undefined): number | undefined {
  if (isMap(parent)) {
    const pair = parent.items.find(({ key }) => String(isScalar(key) ? key.value : key) === String(step))
    return isPair(pair) && isNode(pair.key) ? pair.key.range?.[0] : undefined
  }
  const item = isSeq(parent) ? parent.items[Number(step)] : undefined
  return isNode(item) ? item.range?.[0] : undefined
}

/** `value` is checked instead of the document's own value, for example with its secrets filled in. */
export function parseDocumentAs<S extends z.ZodType>(
  document: SourceDocument,
  schema: S,
  value: unknown = document.value,
): Outcome<z.output<S>> {
  if (document.value === null) return { ok: false, faults: [faultAt(document, [], 'is empty', 'begin it with version: 1')] }
  const result = schema.safeParse(value, { reportInput: false })
  if (result.success) return { ok: true, value: result.data }
  // One error for one value: the further checks of a value that has the wrong form only repeat it.
  const seen = new Set<string>()
  const isFirst = ({ path }: z.core.$ZodIssue): boolean => {
    const place = JSON.stringify(path)
    if (isComposite(valueIn(value, path))) return true
    if (seen.has(place)) return false
    seen.add(place)
    return true
  }
  return { ok: false, faults: result.error.issues.filter(isFirst).flatMap((issue) => faultsOf(document, schema, issue)) }
}

export function placeIn(document: SourceDocument, path: readonly PropertyKey[]): Place {
  const line = document.lineOf(path)
  return { file: document.file, ...(line === undefined ? {} : { line }), path: path.map(String).join('.') }
}

export function faultAt(document: SourceDocument, path: readonly PropertyKey[], message: string, hint?: string): Fault {
  return { ...placeIn(document, path), message, ...(hint === undefined ? {} : { hint }) }
}

export type Report = (path: readonly PropertyKey[], message: string, hint?: string) => void

export function faultsFound(document: SourceDocument, check: (report: Report) => void): readonly Fault[] {
  const faults: Fault[] = []
  check((path, message, hint) => void faults.push(faultAt(document, path, message, hint)))
  return faults
}

function faultsOf(document: SourceDocument, schema: z.ZodType, issue: z.core.$ZodIssue): readonly Fault[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => {
      const names = keysAt(schema, issue.path)
      return faultAt(document, [...issue.path, key], 'is not a known key', suggestion(key, names))
    })
  }
  const written = valueIn(document.value, issue.path)
  if (issue.code !== 'custom' && written === undefined) {
    return [faultAt(document, issue.path, 'is required', requiredHint(schema, issue.path))]
  }
  const [message = '', hint] = plainMessage(issue, written).split(' | ')
  return [faultAt(document, issue.path, message, hint)]
}

function isComposite(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

/** `write version: 1`, where the schema has only a few values. */
function requiredHint(schema: z.ZodType, path: readonly PropertyKey[]): string | undefined {
  const { values = [], entries = {} } = definitionAt(schema, path)
  const choices = [...values, ...Object.values(entries)].map(String)
  return choices.length === 0 ? undefined : `write ${String(path.at(-1))}: ${oneOf(choices)}`
}

/** Our own messages stay unchanged; the schema library's are rewritten in an operator's terms. */
function plainMessage(issue: z.core.$ZodIssue, written: unknown): string {
  if (!/^Invalid /.test(issue.message)) return issue.message
  switch (issue.code) {
    case 'invalid_type':
      return mustBe(issue.expected, written)
    case 'invalid_value':
      return `is not one of the values | ${valueHint(issue.values.map(String), written)}`
    case 'invalid_key':
      return issue.issues[0]?.message ?? 'is not a valid key'
    default:
      return issue.message
  }
}

function valueHint(values: readonly string[], written: unknown): string {
  const all = `write ${oneOf(values)}`
  if (typeof written !== 'string') return all
  const near = nearest(written, values)
  return near === undefined ? all : `did you mean "${near}"?`
}

function oneOf(values: readonly string[]): string {
  const last = values.at(-1) ?? ''
  return values.length < 2 ? last : `${values.slice(0, -1).join(', ')} or ${last}`
}

const TYPES: Readonly<Record<string, string>> = { array: 'list', object: 'mapping', record: 'mapping' }

function mustBe(expected: string, written: unknown): string {
  const type = TYPES[expected] ?? expected
  // The usual cause is a single item instead of a list. A long or unusual item is not repeated.
  const item = type === 'list' && typeof written === 'string' && /^[\w.:@/-]{1,64}$/.test(written) ? written : null
  return `must be ${/^[aeiou]/.test(type) ? 'an' : 'a'} ${type}${item === null ? '' : ` | write [${item}]`}`
}

/** The definition's parts that lead to inner schemas: zod types them only for each kind of schema. */
interface Definition {
  readonly type?: string
  readonly shape?: Readonly<Record<string, z.core.$ZodType>>
  readonly valueType?: z.core.$ZodType
  readonly element?: z.core.$ZodType
  readonly innerType?: z.core.$ZodType
  readonly in?: z.core.$ZodType
  /** Of a literal. */
  readonly values?: readonly unknown[]
  /** Of an enumeration. */
  readonly entries?: Readonly<Record<string, unknown>>
}

function definitionAt(schema: z.ZodType, path: readonly PropertyKey[]): Definition {
  let at = definitionOf(schema)
  for (const step of path) at = definitionOf(at.shape?.[String(step)] ?? at.valueType ?? at.element)
  return at
}

function keysAt(schema: z.ZodType, path: readonly PropertyKey[]): readonly string[] {
  const at = definitionAt(schema, path)
  // Removed keys are known only for their error.
  return Object.entries(at.shape ?? {}).flatMap(([key, type]) => (definitionOf(type).type === 'never' ? [] : [key]))
}

function definitionOf(schema: z.core.$ZodType | undefined): Definition {
  const definition = (schema?._zod.def ?? {}) as Definition
  const inner = definition.innerType ?? definition.in
  return inner === undefined ? definition : definitionOf(inner)
}

function valueIn(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (inner, key) => (typeof inner === 'object' && inner !== null ? (inner as Record<PropertyKey, unknown>)[key] : undefined),
    value,
  )
}

/** Wrong indentation causes most of these errors, whatever the parser reports. */
const INDENTATION = 'check the indentation: items of one list start in the same column, and tabs are not allowed'

interface SyntaxFault {
  readonly code: ErrorCode
  readonly message: string
  readonly pos: readonly [number, number]
}

/** For errors with a cause other than indentation, by the parser's code. */
const HINTS: Readonly<Partial<Record<ErrorCode, string>>> = {
  DUPLICATE_KEY: 'write it once',
  MULTIPLE_DOCS: 'remove the line ---',
}

function syntaxFaults(file: string, text: string, errors: readonly SyntaxFault[], lines: LineCounter): readonly Fault[] {
  const lineOf = ({ pos }: SyntaxFault): number => lines.linePos(pos[0]).line
  return errors
    .filter((error, at) => errors.findIndex((other) => lineOf(other) === lineOf(error)) === at)
    .map((error) => ({
      file,
      line: lineOf(error),
      path: '',
      message: `is not valid YAML: ${error.message.split('\n')[0]?.replace(/:? at line.*$/, '') ?? ''}${repeated(error, text)}`,
      hint: HINTS[error.code] ?? INDENTATION,
    }))
}

/** Empty unless the key is a plain word. */
function repeated({ code, pos }: SyntaxFault, text: string): string {
  if (code !== 'DUPLICATE_KEY') return ''
  const key = /^["']?([\w./-]+)["']?\s*:/.exec(text.slice(pos[0]))?.[1]
  return key === undefined ? '' : ` (${key})`
}

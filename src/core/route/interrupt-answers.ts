/** Finds the answers to interrupts in the body of a run (docs/reference/audit.md, "interrupts"). */
import { isObject, type Json, type JsonObject } from '../json/read.ts'
import { foldedName } from './forwarded-props.ts'

/** `answered`: neither an approval nor a refusal in a known form. */
export type Verdict = 'approved' | 'refused' | 'cancelled' | 'answered'

export interface InterruptAnswer {
  /** Null where the request does not name the interrupt. */
  readonly id: string | null
  readonly answer: Verdict
  /** As JSON text; null where it is too large, and absent where the configuration does not ask for it. */
  readonly content?: string | null
}

/** A run with more answers is refused: none of them may be missing from the audit. */
const MOST_ANSWERS = 100

const LONGEST_ID = 256

/** The most characters of the answers of one request that the audit takes. */
const MOST_CONTENT = 4096

/** The longest text in `command.resume` that is read as JSON: longer ones are no plain approval. */
const LONGEST_TEXT = 4096

/** An answer as the request has it. */
interface Given {
  readonly id?: Json | undefined
  readonly value: Json | undefined
  /** Absent where the value tells. */
  readonly verdict?: Verdict
}

/**
 * Every form by which a runtime or an agent resumes counts, and so does an unknown one. Absent, null and an empty list resume
 * nothing in `resume`, but null does in `command.resume` (docs/contributing/runtime-behaviour.md, "Run input").
 */
export function answersIn(body: JsonObject, keepsContent: boolean): readonly InterruptAnswer[] | 'too-many' {
  const { resume, forwardedProps } = body
  const given = resume === undefined || resume === null ? [] : inResume(resume)
  if (isObject(forwardedProps)) {
    for (const [name, part] of Object.entries(forwardedProps)) {
      if (foldedName(name) !== 'command' || part === null) continue
      for (const one of inCommand(part)) given.push(one)
    }
  }
  return given.length === 0 ? [] : audited(given, keepsContent)
}

/** The answers in the `command` of a run on a LangGraph server. */
export function answersToCommand(command: JsonObject, keepsContent: boolean): readonly InterruptAnswer[] | 'too-many' {
  const { resume = null } = command
  return resume === null ? [] : audited(resumed(resume), keepsContent)
}

function audited(given: readonly Given[], keepsContent: boolean): readonly InterruptAnswer[] | 'too-many' {
  if (given.length > MOST_ANSWERS) return 'too-many'
  let left = MOST_CONTENT
  return given.map(({ id, value, verdict }) => {
    const answer = { id: idOf(id), answer: verdict ?? verdictOn(value) }
    if (!keepsContent) return answer
    const content = textWithin(value ?? null, left)
    left -= content?.length ?? 0
    return { ...answer, content }
  })
}

function inResume(resume: Json): Given[] {
  return Array.isArray(resume) ? bounded(resume as readonly Json[]).map(entry) : [{ value: resume, verdict: 'answered' }]
}

/** An entry of AG-UI's `resume`. */
function entry(value: Json): Given {
  if (!isObject(value)) return { value, verdict: 'answered' }
  const { interruptId: id, status, payload } = value
  if (status === 'resolved') return { id, value: payload }
  return { id, value: payload, verdict: status === 'cancelled' ? 'cancelled' : 'answered' }
}

function inCommand(command: Json): readonly Given[] {
  if (!isObject(command)) return [{ value: command, verdict: 'answered' }]
  return Object.entries(command).flatMap(([key, value]) => (foldedName(key) === 'resume' ? resumed(parsed(value)) : []))
}

/** The runtime's LangGraph agent reads a text as JSON where it can. */
function parsed(value: Json): Json {
  if (typeof value !== 'string' || value.length > LONGEST_TEXT) return value
  try {
    return JSON.parse(value) as Json
  } catch {
    return value
  }
}

/** What the runtime's LangGraph agent makes of `resume`, and the map by ids that LangGraph takes itself. */
function resumed(value: Json): readonly Given[] {
  if (!isObject(value)) return [{ value }]
  if (value['__agui_cancelled__'] === true) return [{ id: value['interrupt_id'], value, verdict: 'cancelled' }]
  const entries = value['__agui_resume_map__']
  if (isObject(entries) && Object.keys(entries).length > 0) {
    return bounded(Object.entries(entries)).map(([id, one]) => ({ ...entry(one), id }))
  }
  const ids = Object.keys(value)
  if (ids.length === 0 || !ids.every((id) => /^[0-9a-f]{32}$/.test(id))) return [{ value }]
  return bounded(Object.entries(value)).map(([id, one]) => ({ id, value: one }))
}

function bounded<Item>(items: readonly Item[]): readonly Item[] {
  return items.length > MOST_ANSWERS ? items.slice(0, MOST_ANSWERS + 1) : items
}

/** A copy: a part of a text keeps the whole text of a large body in memory. */
function idOf(id: Json | undefined): string | null {
  return typeof id === 'string' ? Buffer.from(id.slice(0, LONGEST_ID)).toString() : null
}

const WORDS: ReadonlyMap<Json | undefined, Verdict> = new Map<Json | undefined, Verdict>([
  [true, 'approved'],
  ...['approve', 'approved', 'accept', 'accepted'].map((word) => [word, 'approved'] as const),
  [false, 'refused'],
  ...['reject', 'rejected', 'refuse', 'refused', 'deny', 'denied', 'ignore'].map((word) => [word, 'refused'] as const),
])

/** The forms of CopilotKit's and LangChain's documentation. Where they contradict each other, the answer is only `answered`. */
function verdictOn(value: Json | undefined, depth = 0): Verdict {
  if (Array.isArray(value)) {
    const items = value as readonly Json[]
    return items.length > MOST_ANSWERS || depth > 1 ? 'answered' : agreed(items.map((item) => verdictOn(item, depth + 1)))
  }
  if (!isObject(value)) return WORDS.get(value) ?? 'answered'
  const { approved, accepted, type, decisions } = value
  const told = [approved, accepted, type].filter((word) => word !== undefined).map((word) => WORDS.get(word) ?? 'answered')
  return agreed(
    decisions === undefined ? told : [...told, Array.isArray(decisions) ? verdictOn(decisions, depth + 1) : 'answered'],
  )
}

function agreed([first, ...others]: readonly Verdict[]): Verdict {
  return first !== undefined && others.every((other) => other === first) ? first : 'answered'
}

/** @returns null where it is longer; a large value is not written to find that out */
function textWithin(value: Json, most: number): string | null {
  let left = most
  const tooLarge = new Error('too large')
  try {
    const text = JSON.stringify(value, (key: string, part: unknown) => {
      left -= key.length + 1 + (typeof part === 'string' ? part.length : 0)
      if (left < 0) throw tooLarge
      return part
    })
    return text.length <= most ? text : null
  } catch (error) {
    if (error === tooLarge) return null
    throw error
  }
}

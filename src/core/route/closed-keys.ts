/** Drops the keys that a rule does not have from a value, at every level. */
import type { ListRule, ObjectRule, ValueRule, VariantsRule } from './run-input.ts'
import { isObject, type Json, type JsonObject } from '../json/read.ts'
import type { Steps } from '../json/steps.ts'

/** The most names that are kept of one body: callers choose them. */
const MOST_NAMES = 100

const MOST_CHARACTERS = 100

export interface DroppedKeys {
  count: number
  /** The first ones, each once: `messages[user].secret`. */
  readonly names: Set<string>
}

type Container = JsonObject | readonly Json[]

/** A list, or an object with the keys that it may have. Only what changes, or has a list in it, needs one. */
type Place = ListPlace | ObjectPlace

interface Changing {
  readonly parent: Place | null
  readonly at: string | number
  /** Null if all of it passes. */
  changes: Map<string | number, Change> | null
}

interface ListPlace extends Changing {
  readonly value: readonly Json[]
  readonly rule: ListRule
  /** The first item that was not examined yet. */
  next: number
}

interface ObjectPlace extends Changing {
  readonly value: JsonObject
  readonly rule: ObjectRule
}

/** `emptied`: a value of another type keeps its type and loses its content. */
type Change = 'emptied' | Place

/** Members and items in one step. */
const AT_ONCE = 1024

/**
 * A value of another type than its rule says is emptied, so that the upstream itself refuses it.
 * @returns the same value if all of it passes
 */
export function* closeKeys(value: Json, rule: ValueRule, name: string, dropped: DroppedKeys): Steps<Json> {
  if (rule === 'json' || !isContainer(value)) return value
  if (rule === 'text' || rule.kind !== 'list' || isObject(value)) {
    if (isEmpty(value)) return value
    countDropped(dropped, name)
    return emptied(value)
  }
  const root: ListPlace = { value, rule, parent: null, at: name, next: 0, changes: null }
  const examination: Examination = { lists: [root], dropped }
  let work = 0
  for (let list = examination.lists.at(-1); list !== undefined; list = examination.lists.at(-1)) {
    if (list.next === list.value.length) examination.lists.pop()
    else work += examineItems(list, examination)
    if (work < AT_ONCE) continue
    work = 0
    yield
  }
  return root.changes === null ? value : yield* changedCopy(root)
}

interface Examination {
  /** Lists that are left, the innermost last. */
  readonly lists: ListPlace[]
  readonly dropped: DroppedKeys
}

function countDropped(dropped: DroppedKeys, place: string, key?: string): void {
  dropped.count += 1
  if (dropped.names.size === MOST_NAMES) return
  dropped.names.add(key === undefined ? place : `${place}.${key.slice(0, MOST_CHARACTERS)}`)
}

function isContainer(value: Json): value is Container {
  return typeof value === 'object' && value !== null
}

function isEmpty(value: Container): boolean {
  return Object.keys(value).length === 0
}

function emptied(value: Container): Container {
  return isObject(value) ? {} : []
}

function ruleFor(value: JsonObject, rule: ObjectRule | VariantsRule): ObjectRule {
  return rule.kind === 'object' ? rule : (rule.variants.get(value[rule.by] as string) ?? rule.unknown)
}

function examineItems(list: ListPlace, examination: Examination): number {
  const { value, rule } = list
  let work = 0
  while (list.next < value.length && work < AT_ONCE) {
    const at = list.next++
    const item = value[at] as Json
    work += 1
    if (isObject(item)) work += examineMembers(item, ruleFor(item, rule.items), list, at, examination)
    else if (isContainer(item) && !isEmpty(item)) {
      changesOf(list).set(at, 'emptied')
      countDropped(examination.dropped, rule.items.name)
    }
  }
  return work
}

/** Objects are only as deep as their rules. */
function examineMembers(
  value: JsonObject,
  rule: ObjectRule,
  parent: Place,
  at: string | number,
  examination: Examination,
): number {
  let own: ObjectPlace | null = null
  let work = 0
  for (const key in value) {
    work += 1
    const known = rule.keys.get(key)?.value
    if (known === 'json') continue
    const member = value[key] as Json
    if (known !== undefined && !isContainer(member)) continue
    own ??= { value, rule, parent, at, changes: null }
    if (known === undefined) changesOf(own)
    else if (known !== 'text' && known.kind === 'list' && Array.isArray(member)) {
      examination.lists.push({ value: member as readonly Json[], rule: known, parent: own, at: key, next: 0, changes: null })
      continue
    } else if (known !== 'text' && known.kind !== 'list' && isObject(member)) {
      work += examineMembers(member, ruleFor(member, known), own, key, examination)
      continue
    } else if (isEmpty(member as Container)) continue
    else changesOf(own).set(key, 'emptied')
    countDropped(examination.dropped, rule.name, key)
  }
  return work
}

function changesOf(place: Place): Map<string | number, Change> {
  if (place.changes !== null) return place.changes
  place.changes = new Map()
  if (place.parent !== null) changesOf(place.parent).set(place.at, place)
  return place.changes
}

function* changedCopy(root: Place): Steps<Json> {
  let work = 0
  function* copyOf(place: Place): Steps<Json> {
    const { changes } = place
    if (changes === null) return place.value
    if (++work % AT_ONCE === 0) yield
    if ('next' in place) {
      const items = [...place.value]
      for (const [at, to] of changes) items[at as number] = yield* changed(items[at as number] as Json, to)
      return items
    }
    const members: Record<string, Json> = {}
    for (const key of place.rule.keys.keys()) {
      if (!Object.hasOwn(place.value, key)) continue
      const member = place.value[key] as Json
      const to = changes.get(key)
      members[key] = to === undefined ? member : yield* changed(member, to)
    }
    return members
  }
  function* changed(value: Json, to: Change): Steps<Json> {
    return to === 'emptied' ? emptied(value as Container) : yield* copyOf(to)
  }
  return yield* copyOf(root)
}

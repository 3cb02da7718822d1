/** A configuration file without secrets and names: the schema says which values tell nothing. */
import { isObject, type Json, type JsonObject } from '../../core/json/read.ts'
import type { Pseudonyms } from './pseudonyms.ts'

/** The part of JSON Schema that the schema of the configuration uses. */
export interface Schema {
  readonly type?: string | readonly string[]
  readonly pattern?: string
  readonly enum?: readonly Json[]
  readonly const?: Json
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema | boolean
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
}

/** Durations, sizes, ages and rates: with a unit, because digits alone could be a secret or an id. */
const QUANTITY = /^\d{1,9}(?:ms|s|m|h|d|B|KiB|MiB|GiB|\/[smhd])$/
/** The patterns of quantities, and of no other text in the schema. */
const BEGINS_WITH_DIGIT = /^\^(?:\\d|\[1-9\])/
const REFERENCE = /\$\{(env|file):/

/** Keeps what the schema names: keys, members of enumerations, numbers, booleans and quantities. Everything else gets a pseudonym. */
export function withoutNames(value: Json, schema: Schema, pseudonyms: Pseudonyms): Json {
  const schemas = alternatives(schema)
  if (Array.isArray(value)) {
    const items = schemas.find((one) => one.items !== undefined)?.items ?? {}
    return value.map((item: Json) => withoutNames(item, items, pseudonyms))
  }
  if (isObject(value)) return membersOf(value, schemas, pseudonyms)
  if (typeof value === 'string') return textOf(value, schemas, pseudonyms)
  if (typeof value === 'number' || typeof value === 'boolean')
    return isTold(value, schemas) ? value : pseudonyms.of('value', String(value))
  return null
}

function alternatives(schema: Schema): readonly Schema[] {
  const others = schema.anyOf ?? schema.oneOf ?? []
  return [schema, ...others.flatMap(alternatives)]
}

function membersOf(value: JsonObject, schemas: readonly Schema[], pseudonyms: Pseudonyms): JsonObject {
  const members = Object.entries(value).map(([key, member]): [string, Json] => {
    const named = schemas.map(({ properties }) => properties).find((one) => one !== undefined && Object.hasOwn(one, key))?.[key]
    if (named !== undefined) return [key, withoutNames(member, named, pseudonyms)]
    const rest = schemas.map(({ additionalProperties }) => additionalProperties).find((one) => typeof one === 'object')
    return [pseudonyms.of('name', key), withoutNames(member, typeof rest === 'object' ? rest : {}, pseudonyms)]
  })
  return Object.fromEntries(members)
}

/** True for a number or boolean where the schema takes no free text: a claim that is compared could be anything. */
function isTold(value: number | boolean, schemas: readonly Schema[]): boolean {
  if (schemas.some((one) => one.enum?.includes(value) === true || one.const === value)) return true
  const types = schemas.flatMap(({ type = [] }) => type)
  const isTyped = typeof value === 'boolean' ? types.includes('boolean') : types.includes('number') || types.includes('integer')
  return isTyped && !types.includes('string')
}

function textOf(text: string, schemas: readonly Schema[], pseudonyms: Pseudonyms): string {
  if (schemas.some((one) => one.enum?.includes(text) === true || one.const === text)) return text
  // Only where the schema asks for one: a secret or an id may look like it.
  if (QUANTITY.test(text) && schemas.some(({ pattern = '' }) => BEGINS_WITH_DIGIT.test(pattern))) return text
  const [, kind] = REFERENCE.exec(text) ?? []
  if (kind !== undefined) return `<reference to ${kind === 'env' ? 'the environment' : 'a file'}>`
  if (/^https?:\/\//.test(text) && URL.canParse(text)) return pseudonyms.ofUrl(text)
  return pseudonyms.of('text', text)
}

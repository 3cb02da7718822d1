/** The OpenAPI document of the admin API, and whether an answer is as it says. */
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { valueAt } from '../../src/core/json/pointer.ts'
import type { Reply } from './client.ts'

interface Answer {
  readonly content?: { readonly 'application/json': { readonly schema: object } }
}

type Method = 'get' | 'post' | 'delete'

export interface AdminDocument {
  readonly openapi: string
  readonly paths: Readonly<Record<string, Partial<Record<Method, { readonly responses: Readonly<Record<string, Answer>> }>>>>
}

const FILE = new URL('../../docs/reference/admin-api.openapi.json', import.meta.url)
export const TEXT = readFileSync(FILE, 'utf8')
export const DOCUMENT = JSON.parse(TEXT) as AdminDocument

/** `GET /threads/{id}` and its statuses. */
export const OPERATIONS = Object.entries(DOCUMENT.paths).flatMap(([path, operations]) =>
  (['get', 'post', 'delete'] as const).flatMap((method) => {
    const operation = operations[method]
    return operation === undefined ? [] : [{ name: `${method.toUpperCase()} ${path}`, responses: operation.responses }]
  }),
)

/** A part of the document with what its references lead to in their place; none leads to itself. */
function resolved(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(resolved)
  if (typeof part !== 'object' || part === null) return part
  const { $ref, ...rest } = part as { readonly $ref?: string }
  if ($ref === undefined) return Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, resolved(value)]))
  return resolved(valueAt(DOCUMENT, $ref.slice(1)))
}

const known = new Map<object, z.ZodType>()

function schemaOf(schema: object): z.ZodType {
  const made = known.get(schema) ?? z.fromJSONSchema(resolved(schema) as Parameters<typeof z.fromJSONSchema>[0])
  known.set(schema, made)
  return made
}

/** Statuses with which a request is refused before it reaches an operation. */
const BEFORE = [400, 401, 403, 404, 431, 500]

/** @throws Error for an answer that the document does not have, or describes differently */
export function requireDocumented(method: string, target: string, reply: Reply): void {
  const path = target.replace(/[?#].*$/s, '')
  const operation = OPERATIONS.find(({ name }) => isOf(name, method, path))
  const answer = operation?.responses[reply.status]
  const what = `${method} ${target.slice(0, 80)}: ${reply.status}`
  if (answer === undefined) {
    if (operation === undefined || method === 'HEAD' || BEFORE.includes(reply.status)) return
    throw new Error(`${what} is not documented`)
  }
  const schema = answer.content?.['application/json'].schema
  if (schema === undefined) {
    if (reply.text !== '') throw new Error(`${what} has a body`)
    return
  }
  const read = schemaOf(schema).safeParse(JSON.parse(reply.text))
  if (!read.success) throw new Error(`${what} is not as documented: ${read.error.message}\n${reply.text}`)
}

function isOf(name: string, method: string, path: string): boolean {
  const [verb = '', pattern = ''] = name.split(' ')
  const [before, after] = pattern.split('{id}')
  if (verb !== method) return false
  if (after === undefined) return path === before
  const id = path.slice(before?.length, after === '' ? undefined : -after.length)
  return id !== '' && !id.includes('/') && path === `${before}${id}${after}`
}

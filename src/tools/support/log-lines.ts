/** Lines of the log without ids of users, threads, agents and requests. */
import { isObject, makeJsonReader, type Json, type JsonObject } from '../../core/json/read.ts'
import { CODES, isRefusal, REASONS } from '../../core/reasons.ts'
import { ROUTE_IDS } from '../../core/route/all-routes.ts'
import type { Pseudonyms } from './pseudonyms.ts'

/** Fields whose numbers and booleans tell nothing about a user. */
const FIGURES: ReadonlySet<string> = new Set([
  'complete',
  'connections',
  'count',
  'deadlineMs',
  'delayMs',
  'generation',
  'ms',
  'status',
  'threads',
  'worker',
  'workers',
])

const WORDS: Readonly<Record<string, ReadonlySet<string>>> = {
  level: new Set(['trace', 'debug', 'info', 'warn', 'error', 'fatal']),
  route: new Set([...ROUTE_IDS, 'none']),
  reason: new Set(Object.keys(REASONS)),
  code: new Set(Object.keys(CODES)),
  wouldRefuse: new Set(Object.keys(REASONS)),
  enforcement: new Set(['enforce', 'observe']),
  transport: new Set(['multi-route', 'single-route', 'endpoint', 'langgraph']),
  kind: new Set(['langgraph']),
  cause: new Set(['file', 'SIGHUP', 'admin']),
  outcome: new Set(['done', 'reloaded', 'unchanged', 'refused', ...Object.keys(CODES)]),
}

/** Fields that are kept by a pseudonym, so that lines about the same one can be told apart from others. */
const IDS: Readonly<Record<string, string>> = {
  requestId: 'request',
  client: 'client',
  principal: 'user',
  thread: 'thread',
  agent: 'agent',
  issuer: 'issuer',
  upstream: 'upstream',
  traceId: 'trace',
}

/** Messages of the program are sentences without names and figures. */
const MESSAGE = /^[a-z][a-z ,:;()'-]{0,200}$/
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

export interface LogPart {
  readonly lines: readonly JsonObject[]
  /** Lines that are not the gateway's. */
  readonly unreadable: number
  /** The number of fields that were left out. */
  readonly removed: number
}

export function logPart(lines: readonly string[], pseudonyms: Pseudonyms): LogPart {
  let unreadable = 0
  let removed = 0
  const kept = lines.flatMap((text) => {
    const line = objectIn(text)
    if (line === null || !isOfGateway(line)) {
      unreadable += 1
      return []
    }
    const fields = Object.entries(line).flatMap(([name, value]): [string, Json][] => {
      const shown = fieldOf(name, value, pseudonyms)
      if (shown === null) removed += 1
      return shown === null ? [] : [[name, shown]]
    })
    return [Object.fromEntries(fields)]
  })
  return { lines: kept, unreadable, removed }
}

/** Other programs may write to the same log. */
function isOfGateway({ level, time }: JsonObject): boolean {
  return typeof level === 'string' && WORDS['level']?.has(level) === true && typeof time === 'string' && TIME.test(time)
}

function objectIn(text: string): JsonObject | null {
  const reader = makeJsonReader()
  const reading = reader.push(Buffer.from(text)) ?? reader.end()
  return isRefusal(reading) || !isObject(reading.value) ? null : reading.value
}

function fieldOf(name: string, value: Json, pseudonyms: Pseudonyms): Json {
  if (typeof value === 'number' || typeof value === 'boolean') return FIGURES.has(name) ? value : null
  if (typeof value !== 'string') return null
  if (name === 'time') return TIME.test(value) ? value : null
  if (name === 'msg') return MESSAGE.test(value) ? value : '<message>'
  const kind = Object.hasOwn(IDS, name) ? IDS[name] : undefined
  if (kind !== undefined) return pseudonyms.of(kind, value)
  return Object.hasOwn(WORDS, name) && WORDS[name]?.has(value) === true ? value : null
}

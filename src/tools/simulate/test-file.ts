/** Loads a test file: reads it, finds the callers and objects that its tests name, and the policy under test. */
import { statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Config } from '../../config/schema.ts'
import type { OwnerRecord } from '../../core/decide/decide.ts'
import { ANONYMOUS, EVERYBODY, type Principal } from '../../core/decide/principal.ts'
import { isRefusal } from '../../core/reasons.ts'
import { ALL_ROUTES } from '../../core/route/all-routes.ts'
import { namesAgent, type Method, type Route, type RouteId } from '../../core/route/routes.ts'
import {
  faultAt,
  faultsFound,
  parseDocumentAs,
  readDocument,
  type Outcome,
  type Report,
  type SourceDocument,
} from '../../document/document.ts'
import { Sources } from '../../document/sources.ts'
import { loadPolicy, type Policy } from '../../policy/compile.ts'
import { makeUser } from './made-up-user.ts'
import { surroundingsOf } from '../../config/load.ts'
import { policyFile } from '../../config/policy-file.ts'
import { testSchema, type TestFile, type TestOfFile } from './test-schema.ts'

export interface LoadedTests {
  readonly file: string
  readonly policy: Policy
  readonly facts: TestFile['facts']
  /** By name; null for a caller who is refused for a missing credential before any rule applies. */
  readonly principals: ReadonlyMap<string, Principal | null>
  readonly threads: ReadonlyMap<string, NonNullable<OwnerRecord>>
  readonly tests: readonly (TestOfFile & { readonly line: number | undefined })[]
}

/** The largest file that is read, in bytes. */
const MOST_BYTES = 4 * 1024 * 1024

/** The most decisions in one file: several callers, routes and threads of a test multiply. */
const MOST_DECISIONS = 100_000

/** A policy that the file names replaces `policy`. */
export function loadTests(file: string, config: Config, policy: Policy): Outcome<LoadedTests> {
  const sources = new Sources()
  const read = readWithin(sources, file)
  if (!read.ok) return read
  const document = read.value
  const parsed = parseDocumentAs(document, testSchema)
  if (!parsed.ok) return parsed
  const value = parsed.value
  const tested =
    value.policy === undefined ? null : loadPolicy(sources, policyFile(value.policy, dirname(file)).path, surroundingsOf(config))
  const principals = new Map<string, Principal | null>()
  const threads = new Map<string, NonNullable<OwnerRecord>>()
  const found = faultsFound(document, (report) => {
    readPrincipals(value, config, principals, report)
    readThreads(value, principals, config, threads, report)
    for (const [at, test] of value.tests.entries()) checkTest(test, at, value, report)
  })
  const decisions = value.tests.reduce((sum, test) => sum + decisionsOf(test, threads.size), 0)
  const tooMany = `at most ${MOST_DECISIONS}: write several files`
  const faults = [
    ...found,
    ...(tested === null || tested.ok ? [] : tested.faults),
    ...(decisions > MOST_DECISIONS ? [faultAt(document, ['tests'], `need ${decisions} decisions`, tooMany)] : []),
  ]
  if (faults.length > 0 || tested?.ok === false) return { ok: false, faults }
  return {
    ok: true,
    value: {
      file,
      policy: tested?.value.policy ?? policy,
      facts: value.facts,
      principals,
      threads,
      tests: value.tests.map((test, at) => ({ ...test, line: document.lineOf(['tests', at]) })),
    },
  }
}

function readWithin(sources: Sources, file: string): Outcome<SourceDocument> {
  let bytes = 0
  try {
    bytes = statSync(file).size
  } catch {
    // Reading the file gives the reason.
  }
  if (bytes <= MOST_BYTES) return readDocument(sources, file)
  return { ok: false, faults: [{ file, path: '', message: 'is larger than 4MiB', hint: 'write several files' }] }
}

export function several<T>(value: T | readonly T[] | undefined): readonly T[] {
  if (value === undefined) return []
  return Array.isArray(value) ? (value as readonly T[]) : [value as T]
}

export function rowsOf(test: TestOfFile): readonly Route[] {
  const ids = several<RouteId>(test.route)
  return ALL_ROUTES.filter((row) => ids.includes(row.id) && (test.method === undefined || (row.method as string) === test.method))
}

function decisionsOf(test: TestOfFile, threads: number): number {
  const each = test.lists === undefined ? (test.of?.length ?? 1) : threads
  return (
    several(test.as).length *
    Math.max(1, rowsOf(test).length) *
    Math.max(1, several(test.agent).length) *
    Math.max(1, several(test.thread).length) *
    each
  )
}

function readPrincipals({ principals }: TestFile, config: Config, found: Map<string, Principal | null>, report: Report): void {
  const { mode, issuers } = config.authentication
  for (const [name, value] of Object.entries(principals)) {
    const fault = (message: string, hint: string): void => report(['principals', name], message, hint)
    if (value === 'everybody') {
      if (mode !== 'off') fault('is "everybody", but authentication.mode is not off', 'write anonymous, or name a user')
      found.set(name, EVERYBODY)
    } else if (mode === 'off') {
      fault('is not possible: authentication.mode is off', 'write "everybody": with mode off, all callers are one user')
    } else if (value === 'anonymous') {
      found.set(name, mode === 'optional' ? ANONYMOUS : null)
    } else if (!Object.hasOwn(issuers, value.issuer)) {
      fault(`the configuration has no issuer ${value.issuer}`, `configured: ${Object.keys(issuers).join(', ')}`)
    } else {
      const { roles, permissions, claims } = value
      const attributes = {
        roles,
        permissions,
        claims: Object.entries(claims).map(([claim, one]) => [`/${pointed(claim)}`, one] as const),
      }
      const user = makeUser(value.issuer, value.id, attributes, config)
      if (isRefusal(user)) fault('has no user id', 'claims replace the claim that the key claims.id of the issuer names')
      else found.set(name, user)
    }
  }
}

function pointed(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
}

function readThreads(
  file: TestFile,
  principals: ReadonlyMap<string, Principal | null>,
  { authentication }: Config,
  found: Map<string, NonNullable<OwnerRecord>>,
  report: Report,
): void {
  const keys = Object.keys(authentication.issuers)
  for (const [id, { owner, deleted, granted }] of Object.entries(file.threads)) {
    const named = principals.get(owner)
    const isUser = owner === 'anonymous' || keys.some((key) => owner.startsWith(`${key}:`) && owner.length > key.length + 1)
    if (named === undefined && !isUser && !Object.hasOwn(file.principals, owner)) {
      report(['threads', id, 'owner'], `${owner} is not a user`, 'write a name under principals, or a user id such as corp:bob')
    }
    if (deleted && granted !== undefined) {
      report(['threads', id, 'granted'], 'has no effect', 'a deletion ends all grants')
    }
    const record = { owner: named === undefined ? owner : (named?.id ?? ANONYMOUS.id), deleted }
    found.set(id, granted === undefined ? record : { ...record, granted })
  }
}

function checkTest(test: TestOfFile, at: number, { principals, threads }: TestFile, report: Report): void {
  const fault = (key: string, message: string, hint?: string): void => report(['tests', at, key], message, hint)
  for (const name of several(test.as)) {
    if (!Object.hasOwn(principals, name))
      fault('as', `${name} is not a principal`, `under principals: ${Object.keys(principals).join(', ')}`)
  }
  for (const id of test.lists ?? []) {
    if (!Object.hasOwn(threads, id)) fault('lists', `${id} is not under threads`, 'a list contains only threads with an owner')
  }
  for (const agent of test.agents ?? []) {
    if (test.of?.includes(agent) !== true) fault('agents', `${agent} is not in of`)
  }
  if (test.expect === undefined) return
  const rows = rowsOf(test)
  for (const id of several<RouteId>(test.route)) {
    if (!rows.some((row) => row.id === id)) fault('method', `${id} has no ${test.method as Method}`)
  }
  if (test.leaves === true && !rows.every((row) => row.leave === true))
    fault('leaves', 'is only for route: threads/grants with method: DELETE', 'remove it')
  if (test.messages !== undefined && !rows.every((row) => row.body.keys.includes('messages')))
    fault('messages', 'is only for agent/run, agent/connect and agent/suggest', 'remove it')
  if (test.answers === true && !rows.every(({ body: { keys } }) => keys.includes('resume') || keys.includes('command')))
    fault('answers', 'is only for agent/run, agent/connect, agent/suggest and langgraph/runs/create', 'remove it')
  const about = rows.filter((row) => row.thread !== undefined)
  if (about.length > 0 && test.thread === undefined) fault('route', `${about[0]?.id ?? ''} is about a thread`, 'add thread:')
  if (about.length === 0 && test.thread !== undefined) fault('thread', 'the route is about no thread')
  if (test.agent !== undefined && !rows.some(namesAgent)) fault('agent', 'the route is about no agent')
}

/** Policies as an operator would write them, compiled from a file in a folder of their own. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROUTES_OF } from '../../src/core/route/all-routes.ts'
import { classify, type RouteDescriptor } from '../../src/core/route/classify.ts'
import type { Outcome } from '../../src/document/document.ts'
import { faultLine, type Fault } from '../../src/document/fault.ts'
import { loadPolicy, type LoadedPolicy, type Policy } from '../../src/policy/compile.ts'
import { Sources } from '../../src/document/sources.ts'
import type { PolicySurroundings } from '../../src/policy/faults.ts'
import { DEFAULT_POLICY } from '../../src/config/policy-file.ts'
import { makeFolder } from './gateway.ts'

/** The text of the shipped policy. */
export const SHIPPED = readFileSync(DEFAULT_POLICY.path, 'utf8')

/** The shipped policy with one piece of its text replaced. */
export function edited(from: string, to: string): string {
  if (SHIPPED.split(from).length !== 2) throw new Error(`"${from}" does not stand once in the shipped policy`)
  return SHIPPED.replace(from, to)
}

/** The shipped policy with other rules for messages. */
export function withMessages(messages: object): string {
  return SHIPPED.replace(/^messages:\n(?: {2}.*\n)+/m, `messages: ${JSON.stringify(messages)}\n`)
}

/** A policy of these rules alone, and what else stands in the file. */
export function ruled(rules: readonly object[], more: object = {}): string {
  return JSON.stringify({ version: 1, rules, ...more }, null, 2)
}

/** Loads a policy text for these issuers, and what else the configuration says. */
export function load(
  text: string,
  issuers: readonly string[] = ['corp'],
  more: Omit<PolicySurroundings, 'issuers'> = {},
): Outcome<LoadedPolicy> {
  const { folder, remove } = makeFolder()
  try {
    const file = join(folder, 'policy.yaml')
    writeFileSync(file, text)
    return loadPolicy(new Sources(), file, { issuers, ...more })
  } finally {
    remove()
  }
}

/** Loads what has to be valid. */
export function compiled(text: string, issuers?: readonly string[]): Policy {
  const outcome = load(text, issuers)
  if (!outcome.ok) throw new Error(`refused:\n${outcome.faults.map(faultLine).join('\n')}`)
  return outcome.value.policy
}

/** The faults of a policy; none if it is valid. */
export function faultsIn(
  text: string,
  issuers?: readonly string[],
  more?: Omit<PolicySurroundings, 'issuers'>,
): readonly Fault[] {
  const outcome = load(text, issuers, more)
  return outcome.ok ? [] : outcome.faults
}

/**
 * What a request to a route is about: `method` and the path below the base, where `t-1` is the thread. Below `graphs` the path
 * is one of a LangGraph server.
 */
export function descriptor(method: string, path: string): RouteDescriptor {
  const words = path.split('/')
  const isLangGraph = words[0] === 'graphs'
  const routes = ROUTES_OF[isLangGraph ? 'langgraph' : 'runtime']
  const classified = classify(method, isLangGraph ? words.slice(1) : words, new Map(), routes)
  if (classified.outcome !== 'classified') throw new Error(`${method} ${path}: ${classified.reason}`)
  return classified
}

/** Policies and callers made up from a number: the same ones for the same number, on every machine. */
import type { CallerConditions, ClaimTest, Scalar, Relation, Rule, Rules, Who } from '../../src/core/decide/rules.ts'
import { ALL_ROUTES } from '../../src/core/route/all-routes.ts'
import type { RouteId } from '../../src/core/route/routes.ts'
import type { Policy } from '../../src/policy/compile.ts'
import { rule, rulesOf } from '../../testing/support/rules-of.ts'
import { OPEN_BODIES } from '../../testing/support/open-bodies.ts'

/** Draws. */
export interface Draw {
  /** One of these. */
  one<T>(from: readonly T[]): T
  /** Some of these, perhaps none. */
  some<T>(from: readonly T[]): readonly T[]
  /** True so many times out of a hundred. */
  chance(percent: number): boolean
}

/** Draws by a number (mulberry32). */
export function drawing(seed: number): Draw {
  let state = seed
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const chance = (percent: number): boolean => next() * 100 < percent
  return { one: (from) => from[Math.floor(next() * from.length)]!, some: (from) => from.filter(() => chance(50)), chance }
}

/** What conditions and callers are made of. */
export const WORDS = {
  issuers: ['corp', 'guests'],
  roles: ['staff', 'operator', 'support'],
  permissions: ['finance', 'threads:operate', 'write'],
  pointers: ['/org', '/level', '/groups'],
  values: ['acme', 'globex', 1, 2, true],
  agents: ['default', 'finance'],
} as const

function claimTest(draw: Draw): ClaimTest {
  const at = draw.one(WORDS.pointers)
  const value = draw.one<Scalar>(WORDS.values)
  return draw.one<ClaimTest>([
    { at, is: 'equal', to: value },
    { at, is: 'in', list: typeof value === 'string' ? ['acme', 'globex'] : [value] },
    { at, is: 'containing', item: value },
    { at, is: 'at-least', bound: draw.one([1, 2]) },
    { at, is: 'at-most', bound: draw.one([1, 2]) },
    { at, is: 'present', wanted: draw.chance(50) },
  ])
}

function conditions(draw: Draw): CallerConditions {
  return {
    ...(draw.chance(25) ? { issuers: [draw.one(WORDS.issuers)] } : {}),
    ...(draw.chance(30) ? { roles: [draw.one(WORDS.roles), ...draw.some(WORDS.roles).slice(0, 1)] } : {}),
    ...(draw.chance(30)
      ? {
          permissions: draw.chance(50) ? { any: [draw.one(WORDS.permissions), 'write'] } : { all: [draw.one(WORDS.permissions)] },
        }
      : {}),
    ...(draw.chance(30) ? { claims: [claimTest(draw)] } : {}),
  }
}

// oxfmt-ignore
const SOME_ROUTES: readonly RouteId[] = [
  'info', 'agent/run', 'agent/stop', 'threads/messages', 'threads/update', 'threads/clear', 'threads/grants',
]

function madeRule(draw: Draw, name: string): Rule {
  const plain = draw.chance(20)
  return rule({
    name,
    effect: draw.chance(30) ? 'deny' : 'allow',
    who: draw.one<readonly Who[]>([['signed-in'], ['operator'], ['anonymous', 'signed-in'], ['signed-in', 'operator']]),
    when: plain ? {} : conditions(draw),
    unless: draw.chance(25) ? conditions(draw) : null,
    agents: draw.chance(25) ? new Set([draw.one(WORDS.agents)]) : null,
    methods: draw.chance(15) ? [draw.one(['GET', 'POST', 'PATCH', 'DELETE'])] : null,
    threads: draw.chance(80)
      ? [
          draw.one<Relation>(['own', 'shared', 'unknown', 'foreign']),
          ...draw.some<Relation>(['own', 'shared', 'foreign']).slice(0, 2),
        ]
      : null,
    onlyUserScoped: draw.chance(10),
    hides: draw.chance(20),
    passes: {
      forwardedProps: new Set(draw.chance(20) ? ['a2ui'] : []),
      state: draw.chance(20) ? 'drop' : 'pass',
      tools: 'all',
      messages: OPEN_BODIES.messages,
      langgraph: OPEN_BODIES.langgraph,
      headers: null,
      interrupts: draw.chance(20) ? 'refuse' : 'pass',
    },
    limits: draw.chance(20) ? { runs: 'off' } : {},
  })
}

/** As a file would have to say it: threads on routes about one, and always where a rule allows. */
function fitting(made: Rule, id: RouteId): Rule {
  const about = ALL_ROUTES.some((row) => row.id === id && row.thread !== undefined)
  if (!about) return { ...made, threads: null }
  return made.effect === 'allow' && made.threads === null ? { ...made, threads: ['own'] } : made
}

/** Rules of a policy, up to four on each of a few routes. */
export function madeRules(draw: Draw): Rules {
  const all = ['r1', 'r2', 'r3', 'r4'].slice(0, draw.one([1, 2, 3, 4])).map((name) => madeRule(draw, name))
  const routes = Object.fromEntries(
    SOME_ROUTES.map((id) => [id, all.filter(() => draw.chance(70)).map((one) => fitting(one, id))]),
  )
  const operators = [
    { issuer: 'corp', role: 'operator' },
    ...(draw.chance(50) ? [{ issuer: 'guests', permission: 'threads:operate' }] : []),
  ]
  return { ...rulesOf(routes), operators, sharing: draw.chance(70) }
}

/** The same rules but for one, of which one part is another. */
export function altered(rules: Rules, draw: Draw): Rules {
  const name = draw.one(['r1', 'r2', 'r3', 'r4'])
  const other = madeRule(draw, name)
  const part = draw.one(['when', 'when', 'unless', 'effect', 'who', 'agents', 'threads', 'passes'] as const)
  const routes = Object.entries(rules.routes).map(([id, said]) => [
    id,
    {
      ...said,
      rules: said.rules.map((one) => (one.name === name ? fitting({ ...one, [part]: other[part] }, id as RouteId) : one)),
    },
  ])
  const sharing = draw.chance(15) ? !rules.sharing : rules.sharing
  return { ...rules, sharing, routes: Object.fromEntries(routes) as Rules['routes'] }
}

/** A policy of such rules, as if it had stood in a file. */
export function madePolicy(rules: Rules, file = 'policy.yaml'): Policy {
  return { file, hash: file, rules, claimPointers: [...WORDS.pointers], bodies: OPEN_BODIES }
}

/** Every method of the routes that made-up policies speak of. */
export const MADE_ROWS = ALL_ROUTES.filter(({ id }) => SOME_ROUTES.includes(id))

/** The policy file: a short, declarative list of rules. The gateway denies everything that no rule allows. */
import { z } from 'zod'
import { isPointer } from '../core/json/pointer.ts'
import { ROUTE_IDS } from '../core/route/routes.ts'
import { bodySize, countOrOff, rateOrOff } from '../document/quantities.ts'

const filled = z.string().min(1, 'must not be empty')

const names = (what: string) => z.array(filled).min(1, `must name ${what}`)

/** Larger whole numbers would equal their neighbours, which JSON numbers cannot distinguish here. */
const number = z
  .number()
  .refine(
    (value) => !Number.isInteger(value) || Number.isSafeInteger(value),
    'is too large to be compared exactly | use a claim that is a string',
  )

const scalar = z.union([z.string(), number, z.boolean()], 'is not a value to compare with | a string, number or boolean')

const claim = z
  .strictObject({
    at: z
      .string()
      .refine((path) => path !== '' && isPointer(path), 'is not a JSON pointer | write /sub or /realm_access/roles')
      .describe('Where the claim is: a JSON pointer.'),
    equals: scalar.optional().describe('It is this, of the same type.'),
    in: z
      .array(scalar)
      .min(1, 'must name a value')
      .refine((list) => new Set(list.map((one) => typeof one)).size <= 1, 'has values of several types | a rule for each')
      .optional()
      .describe('It is one of these, which are of one type.'),
    contains: scalar.optional().describe('It is a list, and this is in it.'),
    atLeast: number.optional().describe('It is a number, this or greater.'),
    atMost: number.optional().describe('It is a number, this or smaller.'),
    exists: z.boolean().optional().describe('It is there, or with false it is not.'),
  })
  .refine(
    (one) => Object.entries(one).filter(([key, value]) => key !== 'at' && value !== undefined).length === 1,
    'compares with one thing | write one of equals, in, contains, atLeast, atMost, exists',
  )

/** A list does not say whether any of its permissions is enough. */
function noMapping(permissions: unknown): string {
  const names = Array.isArray(permissions) ? permissions : [permissions]
  return `must be a mapping | ${names.every((name) => typeof name === 'string') ? `write { any: [${names.join(', ')}] }` : 'write any: or all:'}`
}

const conditions = {
  issuers: names('an issuer')
    .optional()
    .describe('Users of one of these issuers, by key of authentication.issuers; by default those of all.'),
  roles: names('a role').optional().describe('Users who have one of these roles.'),
  permissions: z
    .strictObject(
      {
        any: names('a permission').optional().describe('One of these.'),
        all: names('a permission').optional().describe('Every one of these.'),
      },
      { error: ({ code, input }) => (code === 'invalid_type' ? noMapping(input) : undefined) },
    )
    .refine(({ any, all }) => any !== undefined || all !== undefined, 'names no permission | write any: or all:')
    .optional()
    .describe('Users who have these permissions.'),
  claims: z
    .array(claim)
    .min(1, 'must name a claim')
    .optional()
    .describe('Claims of the token, all of them. A claim of another type than it is compared with denies.'),
}

const forwardedProps = z.array(
  z.strictObject({
    name: filled.describe('A name of the top level, or command. and a name below it.'),
    unsafe: z.boolean().default(false).describe("Needed beside names that reach an agent's configuration."),
  }),
)

const state = z.enum(['pass', 'drop'], 'is not a choice | write pass or drop')

const tools = z.union(
  [z.enum(['pass', 'drop']), z.array(filled)],
  'is not a choice | write pass, drop or a list of the names that pass',
)

const who = z.array(
  z.enum(['anonymous', 'signed-in', 'operator'], 'is nobody a rule can speak of | write anonymous, signed-in or operator'),
)

function stranger(routes: unknown): string {
  const known: readonly unknown[] = ROUTE_IDS
  if (known.includes(routes)) return `must be a list | write [${String(routes)}]`
  const unknown = Array.isArray(routes) ? (routes as readonly unknown[]).find((route) => !known.includes(route)) : undefined
  const message = typeof unknown === 'string' ? `${unknown} is not a route` : 'is not a list of routes'
  return `${message} | routes: ${ROUTE_IDS.join(', ')}; a rule that denies may say all`
}

const rule = z
  .strictObject({
    name: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'is not a name | letters, digits, . _ -')
      .optional()
      .describe('What logs, audit lines and explain call it; by default its place in the file.'),
    routes: z
      .union(
        [
          z.literal('all'),
          z.array(z.enum(ROUTE_IDS, `is not a route | routes: ${ROUTE_IDS.join(', ')}`)).min(1, 'must name a route'),
        ],
        { error: ({ input }) => stranger(input) },
      )
      .describe('Which routes it speaks of; a rule that denies may say all.'),
    methods: z
      .array(z.enum(['GET', 'POST', 'PATCH', 'DELETE'], 'is no method of a route | write GET, POST, PATCH or DELETE'))
      .min(1, 'must name a method')
      .optional()
      .describe('Only requests with one of these HTTP methods.'),
    allow: who.optional().describe('Who may; an empty list is nobody.'),
    deny: who.min(1, 'must name somebody').optional().describe('Who may not, whatever other rules allow.'),
    ...conditions,
    unless: z
      .strictObject(conditions)
      .refine(
        (one) => Object.values(one).some((part) => part !== undefined),
        'excepts nobody | name issuers, roles, permissions or claims',
      )
      .optional()
      .describe('The rule does not speak of callers of whom all of this is so.'),
    agents: names('an agent').optional().describe('Only these agents, by id. On routes under agent/ alone.'),
    threads: z
      .array(
        z.enum(['own', 'shared', 'unknown', 'foreign'], 'is no relation to a thread | write own, shared, unknown or foreign'),
      )
      .min(1, 'must name a relation')
      .optional()
      .describe("On routes about a thread: the caller's own, those shared with them, threads without an owner, other people's."),
    only: z
      .literal('user-scoped', 'is not a condition | write user-scoped')
      .optional()
      .describe('Only where upstream.userScoped is true.'),
    refusal: z
      .union([z.literal(403), z.literal(404)], 'is not a refusal | write 403 or 404')
      .default(403)
      .describe('404 hides: a refusal looks like an unknown route. Of a rule that allows it holds for its routes as a whole.'),
    forwardedProps: forwardedProps.optional().describe("In place of the file's forwardedProps, for what this rule allows."),
    state: state.optional().describe("In place of the file's state, for what this rule allows."),
    tools: tools.optional().describe("In place of the file's tools, for what this rule allows."),
    headers: z
      .array(filled)
      .optional()
      .describe('Of the configured forwardHeaders, those that pass with what this rule allows; by default all.'),
    limits: z
      .strictObject({
        requests: rateOrOff.optional().describe('Requests that this rule allows, counted beside limits.requests.'),
        runs: rateOrOff.optional().describe('In place of limits.runs.'),
        newThreads: rateOrOff.optional().describe('In place of limits.newThreads.'),
        streams: countOrOff.optional().describe('In place of limits.streams.'),
        body: bodySize.optional().describe('In place of limits.body and limits.runBody.'),
      })
      .optional()
      .describe("For what this rule allows, per user: in place of the configuration's limits of the same name."),
  })
  .refine((one) => (one.allow === undefined) !== (one.deny === undefined), 'must say allow or deny | one of them')

export const policySchema = z
  .strictObject({
    version: z.literal(1, 'must be 1').describe('The version of this format.'),
    operators: z
      .array(
        z
          .strictObject({
            issuer: filled.optional().describe('A key of authentication.issuers; may be left out while there is one only.'),
            role: filled.optional().describe('Users who have this role.'),
            permission: filled.optional().describe('Users who have this permission.'),
          })
          .refine(
            (one) => one.role !== undefined || one.permission !== undefined,
            'names neither a role nor a permission | it would make every user an operator',
          ),
      )
      .default([])
      .describe('Who is an operator. Operators are not owners: they see no foreign thread unless a rule says so.'),
    rules: z
      .array(rule)
      .min(1, 'must have a rule')
      .describe('Who may use which routes. What any rule denies is denied, and what none allows.'),
    sharing: z
      .boolean()
      .default(false)
      .describe('Whether grants count, for access and lists alike. What a rule opens of shared threads is open only with true.'),
    forwardedProps: forwardedProps
      .default([])
      .describe('Names of forwardedProps that pass besides toolChoice and command.resume.'),
    state: state.default('pass').describe("Whether the caller's state reaches the agent."),
    tools: tools.default('pass').describe("Which of the frontend's tools reach the agent: all, none, or those of these names."),
  })
  .meta({ title: 'Threadwarden policy' })

export type PolicyFile = z.output<typeof policySchema>

export type RuleOfFile = PolicyFile['rules'][number]

/** The policy file: a short, declarative list of rules. The gateway denies everything that no rule allows. */
import { z } from 'zod'
import { isPointer } from '../core/json/pointer.ts'
import { MEDIA_KINDS, MESSAGE_ROLES } from '../core/route/message-rules.ts'
import { COMMANDS, isReservedConfigurable } from '../core/route/langgraph-bodies.ts'
import { RUN_OPTIONS } from '../core/route/langgraph-routes.ts'
import { ROUTE_IDS } from '../core/route/all-routes.ts'
import { ratesOrOff, streamsOrOff, tokenBudgets } from '../document/limits.ts'
import { bodySize } from '../document/quantities.ts'

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
      .describe('The JSON pointer of the claim.'),
    equals: scalar.optional().describe('The claim equals this value, of the same type.'),
    in: z
      .array(scalar)
      .min(1, 'must name a value')
      .refine((list) => new Set(list.map((one) => typeof one)).size <= 1, 'has values of several types | a rule for each')
      .optional()
      .describe('The claim equals one of these values, which are of one type.'),
    contains: scalar.optional().describe('The claim is a list with this item.'),
    atLeast: number.optional().describe('The claim is a number, and at least this.'),
    atMost: number.optional().describe('The claim is a number, and at most this.'),
    exists: z.boolean().optional().describe('The claim is present (true) or absent (false).'),
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
  issuers: names('an issuer').optional().describe('Users of one of these issuers, by issuer id; by default of all.'),
  roles: names('a role').optional().describe('Users with one of these roles.'),
  permissions: z
    .strictObject(
      {
        any: names('a permission').optional().describe('Users with one of these permissions.'),
        all: names('a permission').optional().describe('Users with all of these permissions.'),
      },
      { error: ({ code, input }) => (code === 'invalid_type' ? noMapping(input) : undefined) },
    )
    .refine(({ any, all }) => any !== undefined || all !== undefined, 'names no permission | write any: or all:')
    .optional()
    .describe('Users with these permissions.'),
  claims: z
    .array(claim)
    .min(1, 'must name a claim')
    .optional()
    .describe('Users whose token meets all these conditions. A claim of another type refuses the request.'),
}

const forwardedProps = z.array(
  z.strictObject({
    name: filled.describe('A top-level name, or command. and a name below it.'),
    unsafe: z.boolean().default(false).describe("Required for names that reach an agent's configuration, identity or storage."),
  }),
)

const state = z.enum(['pass', 'drop'], 'is not a choice | write pass or drop')

const tools = z.union(
  [z.enum(['pass', 'drop']), z.array(filled)],
  'is not a choice | write pass, drop or a list of the names that pass',
)

const NO_COUNT = 'is not a number of messages | write 20 or off'

const messages = z.strictObject({
  roles: z
    .array(z.enum(MESSAGE_ROLES, `is not a role | write ${MESSAGE_ROLES.join(', ')}`))
    .min(1, 'must name a role')
    .default(['user', 'assistant', 'tool', 'reasoning', 'activity'])
    .describe('The roles of the messages that a caller may send.'),
  others: z
    .enum(['drop', 'refuse'], 'is not a choice | write drop or refuse')
    .default('drop')
    .describe('Whether a message of another role is dropped, or its request refused.'),
  most: z
    .union([z.literal('off'), z.int().min(1, NO_COUNT)], NO_COUNT)
    .default('off')
    .describe('The most messages of a request.'),
  size: z
    .union([z.literal('off'), bodySize])
    .default('off')
    .describe('The most text in one message, in bytes of UTF-8.'),
  media: z
    .union(
      [z.literal('all'), z.array(z.enum(MEDIA_KINDS, `is not a kind of content | write ${MEDIA_KINDS.join(', ')}`))],
      `is not a choice | write all, or a list of ${MEDIA_KINDS.join(', ')}`,
    )
    .default('all')
    .describe('The types of content parts that a message may have, besides text.'),
  schemes: z
    .union(
      [z.literal('all'), z.array(z.string().regex(/^[a-z][a-z0-9+.-]*$/, 'is not a URL scheme | write https, without a colon'))],
      'is not a choice | write all, or a list such as [https, data]',
    )
    .default('all')
    .describe(
      'The URL schemes of content parts. data also stands for content in the body, and provider for a file that a model provider holds.',
    ),
  history: z
    .enum(['trust', 'verify'], 'is not a choice | write trust or verify')
    .default('trust')
    .describe('Whether the assistant and tool messages of a run are compared with the thread that the runtime has.'),
})

const langgraph = z.strictObject({
  options: z
    .array(z.enum(RUN_OPTIONS, `is not an option of a run | options: ${RUN_OPTIONS.join(', ')}`))
    .default([])
    .describe('The options of a run, and supersteps of a new thread, that callers may set. A request with another is refused.'),
  command: z
    .array(z.enum(COMMANDS, `is not a command | commands: ${COMMANDS.join(', ')}`))
    .default(['resume'])
    .describe(
      'The commands of a run. resume answers an interrupt; update and goto change the state and the next node of the graph.',
    ),
  configurable: z
    .array(
      filled.refine(
        (name) => !isReservedConfigurable(name),
        'names a thread, a run, an assistant or a user | callers cannot set it',
      ),
    )
    .default([])
    .describe('The names in config.configurable that callers may set.'),
  input: z
    .union([z.literal('all'), z.array(filled)], 'is not a choice | write all, or a list such as [messages]')
    .default('all')
    .describe("The parts of the graph's state that callers may set, as the input of a run or values of a state."),
})

const interrupts = z.enum(['pass', 'refuse'], 'is not a choice | write pass or refuse')

const who = z.array(
  z.enum(['anonymous', 'signed-in', 'operator'], 'is not a kind of caller | write anonymous, signed-in or operator'),
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
      .describe('The name in logs, audit lines and explain; by default the place in the file.'),
    routes: z
      .union(
        [
          z.literal('all'),
          z.array(z.enum(ROUTE_IDS, `is not a route | routes: ${ROUTE_IDS.join(', ')}`)).min(1, 'must name a route'),
        ],
        { error: ({ input }) => stranger(input) },
      )
      .describe('The routes that the rule covers; all is only for deny rules.'),
    methods: z
      .array(z.enum(['GET', 'POST', 'PATCH', 'DELETE'], 'is not a method of a route | write GET, POST, PATCH or DELETE'))
      .min(1, 'must name a method')
      .optional()
      .describe('Only requests with one of these HTTP methods.'),
    allow: who.optional().describe('Who may use the routes. An empty list documents a closed route.'),
    deny: who.min(1, 'must name a kind of caller').optional().describe('Who may not use the routes, whatever other rules allow.'),
    ...conditions,
    unless: z
      .strictObject(conditions)
      .refine(
        (one) => Object.values(one).some((part) => part !== undefined),
        'exempts no user | name issuers, roles, permissions or claims',
      )
      .optional()
      .describe('Exempts users who meet all of these conditions.'),
    agents: names('an agent').optional().describe('Only these agents, by id. Only on routes under agent/.'),
    threads: z
      .array(
        z.enum(['own', 'shared', 'unknown', 'foreign'], 'is not a relation to a thread | write own, shared, unknown or foreign'),
      )
      .min(1, 'must name a relation')
      .optional()
      .describe(
        "On routes about a thread: the caller's own threads, threads shared with the caller, unowned (unknown) threads, threads of other users (foreign).",
      ),
    only: z
      .literal('user-scoped', 'is not a condition | write user-scoped')
      .optional()
      .describe('Only if upstream.userScoped is true.'),
    refusal: z
      .union([z.literal(403), z.literal(404)], 'is not a refusal | write 403 or 404')
      .default(403)
      .describe(
        '404 hides the route: a refusal looks like an unknown path. In an allow rule it applies to all refusals on its routes.',
      ),
    forwardedProps: forwardedProps.optional().describe("Replaces the file's forwardedProps for requests that this rule allows."),
    state: state.optional().describe("Replaces the file's state for requests that this rule allows."),
    tools: tools.optional().describe("Replaces the file's tools for requests that this rule allows."),
    messages: messages.optional().describe("Replaces the file's messages for requests that this rule allows."),
    langgraph: langgraph.optional().describe("Replaces the file's langgraph for requests that this rule allows."),
    interrupts: interrupts.optional().describe("Replaces the file's interrupts for requests that this rule allows."),
    headers: z
      .array(filled)
      .optional()
      .describe('The forwardHeaders that are forwarded with requests that this rule allows; by default all.'),
    limits: z
      .strictObject({
        requests: ratesOrOff.optional().describe('Requests that this rule allows, in addition to limits.requests.'),
        runs: ratesOrOff.optional().describe('Replaces limits.runs.'),
        newThreads: ratesOrOff.optional().describe('Replaces limits.newThreads.'),
        streams: streamsOrOff.optional().describe('Replaces limits.streams.'),
        tokens: tokenBudgets.optional().describe('Replaces limits.tokens; an empty list for no budget.'),
        body: bodySize.optional().describe('Replaces limits.body and limits.runBody.'),
      })
      .optional()
      .describe('Limits per user for requests that this rule allows.'),
  })
  .refine((one) => (one.allow === undefined) !== (one.deny === undefined), 'must say allow or deny | one of them')

export const policySchema = z
  .strictObject({
    version: z.literal(1, 'must be 1').describe('The version of this format.'),
    operators: z
      .array(
        z
          .strictObject({
            issuer: filled.optional().describe('An issuer id; optional with a single issuer.'),
            role: filled.optional().describe('Users with this role.'),
            permission: filled.optional().describe('Users with this permission.'),
          })
          .refine(
            (one) => one.role !== undefined || one.permission !== undefined,
            'names neither a role nor a permission | it would make every user an operator',
          ),
      )
      .default([])
      .describe('Who is an operator. Operators see no foreign thread unless a rule allows it.'),
    rules: z
      .array(rule)
      .min(1, 'must have a rule')
      .describe('Who may use which routes. Deny rules win. What no rule allows is denied.'),
    sharing: z
      .boolean()
      .default(false)
      .describe('Whether grants count. With false, no rule opens shared threads, and no list has them.'),
    forwardedProps: forwardedProps
      .default([])
      .describe('The forwardedProps that are forwarded, besides toolChoice and command.resume.'),
    state: state.default('pass').describe("Whether the gateway forwards the caller's state."),
    tools: tools.default('pass').describe('Which frontend tools are forwarded: all, none, or those with these names.'),
    messages: messages.prefault({}).describe('What callers may send as messages of a run.'),
    langgraph: langgraph.prefault({}).describe('What a run on a LangGraph server may set besides its input.'),
    interrupts: interrupts
      .default('pass')
      .describe('Whether runs may answer interrupts of agents, such as approvals. refuse refuses such a run.'),
  })
  .meta({ title: 'Threadwarden policy' })

export type PolicyFile = z.output<typeof policySchema>

export type RuleOfFile = PolicyFile['rules'][number]

/** The schema of policy tests: the caller, the owner of the thread, and the expected decision. */
import { z } from 'zod'
import { text } from '../../document/quantities.ts'
import { isAgentId, isThreadId, isUserId } from '../../core/route/ids.ts'
import { CODES, REASONS, type Code, type Reason } from '../../core/reasons.ts'
import { ROUTE_IDS } from '../../core/route/routes.ts'

const strings = z.array(z.string())

const user = z.strictObject({
  issuer: z.string().describe('A key of authentication.issuers.'),
  id: z
    .string()
    .refine(isUserId, 'is not a user id | write it as in the token, without the issuer id')
    .describe('The id that the issuer gives, without its key: corp:alice is alice of corp.'),
  roles: strings.default([]).describe('Their roles; put into the claims where the issuer has them.'),
  permissions: strings.default([]).describe('Their permissions; put into the claims where the issuer has them.'),
  claims: z.record(z.string(), z.json()).default({}).describe('Further claims of their token.'),
})

const principal = z.union(
  [z.enum(['anonymous', 'everybody']), user],
  'is not a principal | write { issuer: corp, id: alice, roles: [], permissions: [], claims: {} }, anonymous or everybody',
)

const thread = z.string().refine(isThreadId, 'is not a thread id')

const agent = z.string().refine(isAgentId, 'is not an agent id')

const route = z.enum(ROUTE_IDS, `is not a route | routes: ${ROUTE_IDS.join(', ')}`)

function oneOrMore<T extends z.ZodType<string>>(one: T, otherwise: string) {
  return z.union([one, z.array(one).min(1)], otherwise)
}

const outcome = z.enum(['permitted', 'refused'])

const expectation = z.union(
  [
    outcome,
    z.strictObject({
      outcome: outcome.describe('permitted or refused.'),
      code: z
        .enum(Object.keys(CODES) as [Code, ...Code[]], 'is not a code | docs/reference/errors.md lists all codes')
        .optional()
        .describe('What the caller is told.'),
      reason: z
        .enum(Object.keys(REASONS) as [Reason, ...Reason[]], 'is not a reason | docs/reference/errors.md lists all reasons')
        .optional()
        .describe('What the log says.'),
      rule: z.string().optional().describe('The name of the rule that decides.'),
    }),
  ],
  'is not an expectation | write permitted, refused, or { outcome: refused, code: not-owner, reason: thread-foreign, rule: name }',
)

const policyTest = z
  .strictObject({
    name: text.describe('What is said of it.'),
    as: oneOrMore(z.string(), 'is not a principal | write a name under principals, or a list of names').describe(
      'Who asks, by name; or several.',
    ),
    route: oneOrMore(route, `is not a route | routes: ${ROUTE_IDS.join(', ')}`)
      .optional()
      .describe('What for; or several.'),
    method: z.enum(['GET', 'POST', 'PATCH', 'DELETE']).optional().describe('By default every method that the route has.'),
    agent: oneOrMore(agent, 'is not an agent id')
      .optional()
      .describe('On routes about an agent: which one. By default one called default.'),
    thread: oneOrMore(thread, 'is not a thread id')
      .optional()
      .describe('On routes about a thread: which one. One that is not under threads belongs to nobody.'),
    leaves: z
      .literal(true, 'must be true | write true, or remove it')
      .optional()
      .describe('On DELETE of threads/grants: the grant that is taken back names whoever asks.'),
    expect: expectation.optional().describe('What has to come of it.'),
    lists: z.array(thread).optional().describe('In place of route and expect: exactly the threads that their list holds.'),
    agents: z.array(agent).optional().describe('In place of route and expect: those of `of` that /info names and they may use.'),
    of: z.array(agent).optional().describe('Beside agents: those that the upstream has.'),
  })
  .refine(
    ({ expect, lists, agents }) => [expect, lists, agents].filter((one) => one !== undefined).length === 1,
    'must have exactly one of expect, lists, agents',
  )
  .refine(
    ({ expect, route: routes }) => (expect === undefined) === (routes === undefined),
    'has expect without route, or route without it',
  )
  .refine(({ agents, of }) => (agents === undefined) === (of === undefined), 'has agents without of, or of without it')
  .refine(
    ({ expect, method, agent: named, thread: about, leaves }) =>
      expect !== undefined || [method, named, about, leaves].every((one) => one === undefined),
    'has method, agent, thread or leaves without route',
  )

export const testSchema = z
  .strictObject({
    version: z.literal(1, 'must be 1').describe('The version of this format.'),
    policy: text.optional().describe("The policy file, from the folder of this file; by default the configuration's."),
    principals: z.record(z.string(), principal).describe('Who asks, by a name of your choice.'),
    threads: z
      .record(
        thread,
        z.strictObject({
          owner: z.string().describe('A name under principals, or a user id: corp:bob.'),
          deleted: z.boolean().default(false).describe('True if they deleted it.'),
          granted: z
            .enum(['read', 'write'], 'is not a right | write read or write')
            .optional()
            .describe('For what it was granted to whoever else asks.'),
        }),
      )
      .default({})
      .describe('Whose threads there are, by id.'),
    facts: z
      .strictObject({
        userScoped: z.boolean().optional().describe('In place of upstream.userScoped.'),
        unknownThread: z.enum(['claim', 'verify', 'deny']).optional().describe('In place of ownership.unknownThread.'),
        upstreamHistory: z
          .enum(['none', 'some'])
          .default('none')
          .describe('What the upstream holds of threads without an owner, where it is asked.'),
      })
      .prefault({})
      .describe('What else is so; by default as the configuration says. The policy is tested as enforced.'),
    tests: z.array(policyTest).min(1, 'must have at least one test').describe('What has to come of what.'),
  })
  .meta({ title: 'Threadwarden tests of a policy' })

export type TestFile = z.output<typeof testSchema>

export type TestOfFile = TestFile['tests'][number]

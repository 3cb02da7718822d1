/** The schema of policy tests: the caller, the owner of the thread, and the expected decision. */
import { z } from 'zod'
import { policyReference } from '../../config/policy-file.ts'
import { text } from '../../document/quantities.ts'
import { isAgentId, isThreadId, isUserId } from '../../core/route/ids.ts'
import { CODES, REASONS, type Code, type Reason } from '../../core/reasons.ts'
import { ROUTE_IDS } from '../../core/route/all-routes.ts'

const strings = z.array(z.string())

const user = z.strictObject({
  issuer: z.string().describe('The issuer id: a key of authentication.issuers.'),
  id: z
    .string()
    .refine(isUserId, 'is not a user id | write it as in the token, without the issuer id')
    .describe('The user id without the issuer id: write alice for corp:alice.'),
  roles: strings.default([]).describe('The roles, in the claims where the issuer has them.'),
  permissions: strings.default([]).describe('The permissions, in the claims where the issuer has them.'),
  claims: z.record(z.string(), z.json()).default({}).describe('More claims of the token.'),
})

const principal = z.union(
  [z.enum(['anonymous', 'everybody']), user],
  'is not a principal | write { issuer: corp, id: alice, roles: [], permissions: [], claims: {} }, "anonymous" or "everybody"',
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
        .describe('The code of the answer.'),
      reason: z
        .enum(Object.keys(REASONS) as [Reason, ...Reason[]], 'is not a reason | docs/reference/errors.md lists all reasons')
        .optional()
        .describe('The reason in the log.'),
      rule: z.string().optional().describe('The name of the rule that decides.'),
    }),
  ],
  'is not an expectation | write permitted, refused, or { outcome: refused, code: not-owner, reason: thread-foreign, rule: name }',
)

const policyTest = z
  .strictObject({
    name: text.describe('The name of the test.'),
    as: oneOrMore(z.string(), 'is not a principal | write a name under principals, or a list of names').describe(
      'The caller, by a name under principals; or a list.',
    ),
    route: oneOrMore(route, `is not a route | routes: ${ROUTE_IDS.join(', ')}`)
      .optional()
      .describe('The route; or a list.'),
    method: z
      .enum(['GET', 'POST', 'PATCH', 'DELETE'])
      .optional()
      .describe('The HTTP method. Default: every method of the route.'),
    agent: oneOrMore(agent, 'is not an agent id')
      .optional()
      .describe('The agent or assistant, on routes with one. Default: default.'),
    thread: oneOrMore(thread, 'is not a thread id')
      .optional()
      .describe('The thread, on routes with a thread. A thread that is not under threads has no owner.'),
    leaves: z
      .literal(true, 'must be true | write true, or remove it')
      .optional()
      .describe('On DELETE of threads/grants: the caller removes a grant to themselves.'),
    messages: z
      .array(z.record(z.string(), z.json()))
      .optional()
      .describe('On agent/run, agent/connect and agent/suggest: the messages that the request has.'),
    forwards: z
      .array(z.string())
      .optional()
      .describe('With messages: the roles of the messages that are forwarded, in their order.'),
    answers: z
      .literal(true, 'must be true | write true, or remove it')
      .optional()
      .describe('On agent/run, agent/connect, agent/suggest and langgraph/runs/create: the body answers an interrupt.'),
    expect: expectation.optional().describe('The expected decision.'),
    lists: z.array(thread).optional().describe('Instead of route and expect: exactly the threads in the list of the caller.'),
    agents: z
      .array(agent)
      .optional()
      .describe('Instead of route and expect: the agents of `of` that /info lists for the caller.'),
    of: z.array(agent).optional().describe('With agents: all agents of the upstream.'),
  })
  .refine(
    ({ expect, lists, agents }) => [expect, lists, agents].filter((one) => one !== undefined).length === 1,
    'must have exactly one of expect, lists, agents',
  )
  .refine(
    ({ expect, route: routes }) => (expect === undefined) === (routes === undefined),
    'has expect without route, or route without it',
  )
  .refine(({ messages, forwards }) => forwards === undefined || messages !== undefined, 'has forwards without messages')
  .refine(({ agents, of }) => (agents === undefined) === (of === undefined), 'has agents without of, or of without it')
  .refine(
    ({ expect, method, agent: named, thread: about, leaves, messages, answers }) =>
      expect !== undefined || [method, named, about, leaves, messages, answers].every((one) => one === undefined),
    'has method, agent, thread, leaves, messages or answers without route',
  )

export const testSchema = z
  .strictObject({
    version: z.literal(1, 'must be 1').describe('The version of this format.'),
    policy: policyReference
      .optional()
      .describe('The policy: a file, relative to this file, or builtin:NAME. Default: the policy of the configuration.'),
    principals: z.record(z.string(), principal).describe('The callers, by a name of your choice.'),
    threads: z
      .record(
        thread,
        z.strictObject({
          owner: z.string().describe('The owner: a name under principals, or a user id such as corp:bob.'),
          deleted: z.boolean().default(false).describe('true if the owner deleted the thread.'),
          granted: z
            .enum(['read', 'write'], 'is not a right | write read or write')
            .optional()
            .describe('The right that the other callers were granted.'),
        }),
      )
      .default({})
      .describe('The threads with an owner, by id.'),
    facts: z
      .strictObject({
        userScoped: z.boolean().optional().describe('Replaces upstream.userScoped.'),
        unknownThread: z.enum(['claim', 'verify', 'deny']).optional().describe('Replaces ownership.unknownThread.'),
        upstreamHistory: z
          .enum(['none', 'some'])
          .default('none')
          .describe('The history of unowned threads in the upstream, for unknownThread: verify.'),
      })
      .prefault({})
      .describe('Other facts. Default: as in the configuration. Tests always run as with enforcement: enforce.'),
    tests: z.array(policyTest).min(1, 'must have at least one test').describe('The tests.'),
  })
  .meta({ title: 'Threadwarden policy tests' })

export type TestFile = z.output<typeof testSchema>

export type TestOfFile = TestFile['tests'][number]

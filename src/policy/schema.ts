/** The policy file: a short, declarative list of rules. Whatever no rule allows is denied. */
import { z } from 'zod'
import { ROUTE_IDS } from '../core/routes.ts'

const rule = z.strictObject({
  routes: z.array(z.enum(ROUTE_IDS, `is not a route | routes: ${ROUTE_IDS.join(', ')}`)).min(1, 'must name a route'),
  allow: z
    .array(z.enum(['anonymous', 'signed-in', 'operator'], 'is nobody a rule can allow | write anonymous, signed-in or operator'))
    .describe('Who may; an empty list is nobody.'),
  issuers: z
    .array(z.string().min(1))
    .min(1, 'must name an issuer')
    .optional()
    .describe('Only users of these issuers, by key of authentication.issuers; by default those of all.'),
  threads: z
    .array(z.enum(['own', 'unknown', 'foreign'], 'is no relation to a thread | write own, unknown or foreign'))
    .min(1, 'must name a relation')
    .optional()
    .describe("On routes about a thread: the caller's own, threads without an owner, other people's."),
  only: z
    .literal('user-scoped', 'is not a condition | write user-scoped')
    .optional()
    .describe('Only where upstream.userScoped is true.'),
  refusal: z
    .union([z.literal(403), z.literal(404)], 'is not a refusal | write 403 or 404')
    .default(403)
    .describe('404 hides the thread: a refusal looks like an unknown route.'),
})

/** The whole policy file. */
export const policySchema = z
  .strictObject({
    version: z.literal(1, 'must be 1'),
    operators: z
      .array(
        z
          .strictObject({
            issuer: z
              .string()
              .min(1)
              .optional()
              .describe('A key of authentication.issuers; may be left out while there is one only.'),
            role: z.string().min(1).optional(),
            permission: z.string().min(1).optional(),
          })
          .refine(
            (one) => one.role !== undefined || one.permission !== undefined,
            'names neither a role nor a permission | it would make every user an operator',
          ),
      )
      .default([])
      .describe('Who is an operator. Operators are not owners: they see no foreign thread unless a rule says so.'),
    rules: z.array(rule).min(1, 'must have a rule'),
    forwardedProps: z
      .array(
        z.strictObject({
          name: z.string().min(1),
          unsafe: z.boolean().default(false).describe("Needed beside names that reach an agent's configuration."),
        }),
      )
      .default([])
      .describe('Names of forwardedProps that pass besides toolChoice and command.resume.'),
    state: z
      .enum(['pass', 'drop'], 'is not a choice | write pass or drop')
      .default('pass')
      .describe("Whether the caller's state reaches the agent."),
    tools: z
      .union(
        [z.enum(['pass', 'drop']), z.array(z.string().min(1))],
        'is not a choice | write pass, drop or a list of the names that pass',
      )
      .default('pass')
      .describe("Which of the frontend's tools reach the agent: all, none, or those of these names."),
  })
  .meta({ title: 'Threadwarden policy' })

/** A policy file that passed the schema. */
export type PolicyFile = z.output<typeof policySchema>

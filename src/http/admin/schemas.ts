/** The answers of the admin API. The types of its handlers and its OpenAPI document are made from these schemas. */
import { z } from 'zod'
import { granteeKeys, rightKey } from '../../operator/grant-form.ts'

const time = z.iso.datetime().describe('RFC 3339, in UTC.')
const timeOrNull = time.nullable()

export const errorSchema = z
  .strictObject({ error: z.string(), message: z.string(), code: z.string() })
  .meta({ id: 'Error', description: '`error` and `message` have the same text.' })

export const revocationSchema = z
  .union([
    z.strictObject({ tokenId: z.string(), revokedAt: time }),
    z.strictObject({
      user: z.string(),
      before: timeOrNull.describe('Null for all tokens of the user.'),
      revokedAt: time,
    }),
  ])
  .meta({ id: 'Revocation' })

export const grantSchema = z
  .strictObject({
    ...granteeKeys,
    right: rightKey,
    grantedBy: z.string().describe('A user id, or `operator`.'),
    grantedAt: time,
  })
  .meta({ id: 'Grant' })

export const threadSchema = z
  .strictObject({
    thread: z.string(),
    scope: z.string().describe('Key of its upstream under `upstreams` or `agents`; empty for a thread of `upstream`.'),
    state: z
      .enum(['live', 'new', 'deleted', 'withheld', 'seen'])
      .describe(
        '`live`: owned. `new`: no run has confirmed the claim. `deleted`: deleted by its owner. `withheld`: an operator removed the owner. `seen`: no row, only observed in observe mode.',
      ),
    owner: z.string().nullable(),
    agent: z.string().nullable(),
    name: z.string().nullable(),
    archived: z.boolean(),
    createdAt: timeOrNull,
    lastUsedAt: timeOrNull,
    deletedAt: timeOrNull,
    grants: z.array(grantSchema),
    runners: z.array(z.string()).readonly().describe('Users that ran it in observe mode, earliest first.'),
  })
  .meta({ id: 'Thread' })

export const threadRowSchema = threadSchema
  .omit({ grants: true, runners: true })
  .meta({ id: 'ThreadRow', description: 'A thread without its grants.' })

export const reloadSchema = z
  .strictObject({
    outcome: z.enum(['reloaded', 'unchanged', 'refused']),
    generation: z.int().min(1),
    faults: z.array(z.string()).readonly(),
  })
  .meta({ id: 'Reload' })

const place = z
  .strictObject({ name: z.string(), file: z.string(), line: z.int().nullable() })
  .meta({ id: 'RulePlace', description: 'A rule of the policy, with its line in the file.' })

export const decisionSchema = z
  .strictObject({
    audit: z.literal(1),
    time,
    requestId: z.string(),
    client: z.string().nullable().describe('The address of the caller.'),
    principal: z
      .looseObject({ id: z.string() })
      .nullable()
      .describe('The caller; null before authentication, and where that failed.'),
    credential: z.enum(['header', 'cookie']).nullable().describe('Where the credential was sent; null without one.'),
    route: z.string().describe('`none` where no route was found.'),
    method: z.string().nullable(),
    agent: z.string().nullable(),
    thread: z.string().nullable(),
    interrupts: z
      .array(z.strictObject({ id: z.string().nullable(), answer: z.enum(['approved', 'refused', 'cancelled', 'answered']) }))
      .readonly()
      .nullable()
      .describe('The answers to interrupts in the body, without their content.'),
    transport: z.string(),
    scope: z.string(),
    facts: z.looseObject({}),
    decision: z.enum(['permitted', 'refused']),
    reason: z.string().describe('`permitted`, or the reason of the refusal.'),
    code: z.string().nullable().describe('The code of the answer; null for a permit.'),
    status: z.int().nullable(),
    rule: place.nullable().describe('The rule that decided.'),
    observed: z.string().nullable().describe('In observe mode: why enforcing would have refused it.'),
    hidden: z.int(),
    policy: z.string().describe('The hash of the policy.'),
    generation: z.int(),
    latencyMs: z.number().nullable(),
  })
  .meta({ id: 'Decision', description: 'A line of the audit log.' })

export const minuteSchema = z
  .strictObject({
    minute: time.describe('The beginning of the minute.'),
    permitted: z.int(),
    refused: z.record(z.string(), z.int()).describe('The number of refusals by reason.'),
  })
  .meta({ id: 'Minute' })

export const streamSchema = z
  .strictObject({
    requestId: z.string(),
    openedAt: time,
    user: z.string(),
    route: z.string(),
    agent: z.string().nullable(),
    thread: z.string().nullable(),
    expiresAt: timeOrNull.describe('When its token expires.'),
  })
  .meta({ id: 'Stream' })

export const statusSchema = z
  .strictObject({
    version: z.string(),
    startedAt: time,
    workers: z.int().describe('The number of processes that serve requests.'),
    ready: z.boolean(),
    pending: z.record(z.string(), z.string()).describe('What the gateway waits for, as `/readyz` says it.'),
    notes: z.record(z.string(), z.string()),
    configuration: z.strictObject({
      digest: z.string().describe('Equal for gateways that are configured alike.'),
      generation: z.int(),
      enforcement: z.enum(['enforce', 'observe']),
      policy: z.strictObject({ file: z.string(), hash: z.string() }),
    }),
    lastReload: z
      .strictObject({
        at: time,
        cause: z.string(),
        outcome: z.enum(['reloaded', 'unchanged', 'refused']),
        generation: z.int(),
        faults: z.array(z.string()).readonly(),
      })
      .nullable()
      .describe('Null until the first reload.'),
    issuers: z
      .array(
        z.strictObject({
          key: z.string(),
          issuer: z.string(),
          state: z
            .enum(['usable', 'stale', 'missing'])
            .describe('`stale`: the last fetch failed, and older keys are used. `missing`: tokens of the issuer get 503.'),
          fetchedAt: timeOrNull.describe('Null for keys from the configuration, and before the first fetch.'),
          keys: z.array(z.string()).readonly().describe('Key ids, as far as keys have one.'),
        }),
      )
      .readonly(),
    upstreams: z
      .array(
        z.strictObject({
          key: z.string().describe('Key under `upstreams` or `agents`; empty for `upstream`.'),
          publicPath: z.string(),
          transport: z.string().nullable().describe('Null while it is unknown.'),
        }),
      )
      .readonly(),
    certificates: z
      .array(z.strictObject({ name: z.string().describe('The setting that names it.'), expiresAt: time }))
      .readonly(),
  })
  .meta({ id: 'Status' })

const access = z.strictObject({
  effect: z.enum(['allow', 'deny']),
  who: z.array(z.string()).readonly(),
  threads: z
    .array(z.string())
    .readonly()
    .nullable()
    .describe('The relations of the caller to the thread; null for every thread, and on routes without one.'),
  agents: z.array(z.string()).readonly().nullable().describe('Null for every agent.'),
  conditions: z.array(z.string()).readonly(),
  rule: place,
})

export const policySchema = z
  .strictObject({
    file: z.string(),
    hash: z.string(),
    routes: z
      .array(
        z.strictObject({
          upstream: z.string(),
          route: z.string(),
          method: z.string(),
          path: z.string(),
          hasThread: z.boolean(),
          closed: z.boolean().describe('True if no caller is allowed.'),
          access: z.array(access).readonly().describe('In the order in which the rules are tried.'),
        }),
      )
      .readonly(),
  })
  .meta({ id: 'Policy' })

export const budgetSchema = z
  .strictObject({
    rule: z.string().nullable().describe('The rule of the policy; null for a budget of the configuration.'),
    per: z.string().describe('`user`, `group`, or the JSON pointer of a claim.'),
    limit: z.int().describe('Tokens in a window.'),
    windowSeconds: z.number(),
    onExceeded: z.enum(['finish', 'end']),
    spent: z.int().describe('Tokens charged in the current window.'),
    reserved: z.int().describe('Tokens set aside for open runs.'),
    openRuns: z.int(),
    resetsAt: z.string().nullable().describe('The end of the window; null before its first run.'),
  })
  .meta({ id: 'Budget' })

const outcome = z.strictObject({
  outcome: z.enum(['permitted', 'refused', 'needs', 'answered']),
  status: z.int().nullable(),
  code: z.string().nullable(),
  reason: z.string(),
  rule: place.nullable(),
})

export const configurationSchema = z
  .strictObject({
    digest: z.string(),
    generation: z.int(),
    written: z
      .looseObject({})
      .describe('With references instead of their values, and without secrets and the addresses of listeners.'),
  })
  .meta({ id: 'Configuration' })

export const explanationSchema = z
  .strictObject({
    then: z
      .strictObject({ outcome: z.enum(['permitted', 'refused']), reason: z.string(), rule: z.string().nullable() })
      .nullable()
      .describe('The decision of that time; null for claims.'),
    same: z.boolean().nullable().describe('Whether it is decided now as then; null if that is not known.'),
    now: outcome.nullable().describe('What the active policy decides; null if the request was refused before the policy.'),
    request: z.looseObject({}).nullable(),
    route: z.looseObject({ id: z.string(), method: z.string() }).nullable(),
    principal: z.looseObject({ id: z.string() }).nullable(),
    facts: z.looseObject({}).nullable(),
    policy: z.strictObject({ file: z.string(), hash: z.string() }),
    rules: z
      .array(z.strictObject({ ...place.shape, effect: z.enum(['allow', 'deny']), verdict: z.string(), decides: z.boolean() }))
      .readonly()
      .describe('Each rule that was tried, in order.'),
    upstream: z.looseObject({}).nullable().describe('The request that the upstream would get, without secrets.'),
    notes: z.array(z.string()).readonly(),
  })
  .meta({ id: 'Explanation' })

export type Decision = z.input<typeof decisionSchema>
export type MinuteOfDecisions = z.input<typeof minuteSchema>
export type BudgetUsed = z.input<typeof budgetSchema>
export type Stream = z.input<typeof streamSchema>
export type Status = z.input<typeof statusSchema>
export type Configuration = z.input<typeof configurationSchema>
export type ActivePolicy = z.input<typeof policySchema>
export type Explained = z.input<typeof explanationSchema>

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

export const reloadSchema = z
  .strictObject({
    outcome: z.enum(['reloaded', 'unchanged', 'refused']),
    generation: z.int().min(1),
    faults: z.array(z.string()).readonly(),
  })
  .meta({ id: 'Reload' })

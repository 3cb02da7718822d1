/** Limits as operators write them: an amount, and whose use counts together. */
import { z } from 'zod'
import { isPointer } from '../core/json/pointer.ts'
import { rate } from './quantities.ts'

const PER_HINT = 'is not a key of a limit | write user, group, or the JSON pointer of a claim, such as /tenant'

const sharedKeys = {
  per: z
    .string(PER_HINT)
    .refine((per) => per === 'user' || per === 'group' || (per !== '' && isPointer(per)), PER_HINT)
    .default('user')
    .describe(
      'Whose use counts together: each user, all members of a group, or all users of an issuer with the same value of a claim (a JSON pointer). A caller without the group or claim counts alone.',
    ),
  groups: z
    .array(z.string().regex(/^[a-z0-9-]+:./, 'is not a group | write issuer:group, such as corp:staff'))
    .min(1, 'must name a group')
    .optional()
    .describe('With per: group: only these groups, as issuer:group; by default all groups of the token.'),
}

const GROUPS_ONLY = { message: 'is for per: group only | write per: group, or remove this key', path: ['groups'] }

interface WrittenShared {
  readonly per: string
  readonly groups?: readonly string[] | undefined
}

function hasItsGroups({ per, groups }: WrittenShared): boolean {
  return groups === undefined || per === 'group'
}

interface Shared {
  readonly by?:
    | { readonly kind: 'group'; readonly groups: readonly string[] | null }
    | { readonly kind: 'claim'; readonly at: string }
}

function sharedBy({ per, groups }: WrittenShared): Shared {
  if (per === 'user') return {}
  return { by: per === 'group' ? { kind: 'group', groups: groups ?? null } : { kind: 'claim', at: per } }
}

const off = z.literal('off')

const rateShared = z
  .strictObject({ rate: rate.describe('The amount.'), ...sharedKeys })
  .refine(hasItsGroups, GROUPS_ONLY)
  .transform(({ rate: { amount, per }, ...shared }) => ({ amount, per, ...sharedBy(shared) }))

const oneRate = z.union([rate, rateShared])

/** Zod does not say which part of a union is wrong: the message shows a valid limit of the intended form. */
function unionFault(what: string, plain: string, shared: string) {
  return ({ input }: { readonly input?: unknown }): string =>
    typeof input === 'object' && input !== null
      ? `is not ${what} | write ${shared}, or a list of such limits, each with another per`
      : `is not ${what} | write ${plain} or off`
}

export const ratesOrOff = z.union(
  [off, rate.transform((one) => [one]), rateShared.transform((one) => [one]), z.array(oneRate).min(1).refine(haveOtherKeys)],
  { error: unionFault('a rate', '60/m, 10/s, 1000/h', '{ rate: 60/m, per: /tenant }') },
)

const NOT_A_NUMBER = 'is not a number of streams | write 20 or off'
const count = z.int().min(1, NOT_A_NUMBER)

const streamsShared = z
  .strictObject({ most: count.describe('The number of open streams.'), ...sharedKeys })
  .refine(hasItsGroups, GROUPS_ONLY)
  .transform(({ most, ...shared }) => ({ most, ...sharedBy(shared) }))

const oneCount = z.union([count.transform((most) => ({ most })), streamsShared])

export const streamsOrOff = z.union(
  [
    off,
    count.transform((most) => [{ most }]),
    streamsShared.transform((one) => [one]),
    z.array(oneCount).min(1).refine(haveOtherKeys),
  ],
  { error: unionFault('a number of streams', '20', '{ most: 20, per: /tenant }') },
)

/** Two limits with one key would count the same use twice. */
function haveOtherKeys(limits: readonly object[]): boolean {
  const keys = limits.map((limit) => JSON.stringify('by' in limit ? limit.by : null))
  return new Set(keys).size === keys.length
}

const WINDOW_UNITS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 }
const WINDOW_HINT = 'is not a window | write 1h, 1d or 30d, at most 366d'

const window = z
  .string(WINDOW_HINT)
  .regex(/^[1-9]\d{0,5}[mhd]$/, WINDOW_HINT)
  .transform((text) => Number.parseInt(text, 10) * (WINDOW_UNITS[text.slice(-1)] ?? Number.NaN))
  .refine((milliseconds) => milliseconds <= 366 * 86_400_000, WINDOW_HINT)

const TOKENS_HINT = 'is not a number of tokens | write 200000'
const tokens = z.int(TOKENS_HINT).min(1, TOKENS_HINT).max(1_000_000_000_000, 'is too many | at most 1000000000000')

/** About the tokens of a long conversation with its answer. */
const DEFAULT_RESERVE = 10_000

const tokenBudget = z
  .strictObject({
    limit: tokens.describe('Tokens in a window. A run that would start above it is refused.'),
    window: window.describe('How long a window lasts: minutes, hours or days. It begins with the first run that counts in it.'),
    ...sharedKeys,
    reserve: tokens
      .optional()
      .describe(
        `Tokens that the gateway sets aside for each open run, and charges for a run whose end it does not see; by default ${DEFAULT_RESERVE}, or limit if that is less.`,
      ),
    onExceeded: z
      .enum(['finish', 'end'])
      .default('finish')
      .describe('An open run that uses more than is left goes on to its end, or ends with a RUN_ERROR event.'),
  })
  .refine(hasItsGroups, GROUPS_ONLY)
  .refine(({ reserve, limit }) => reserve === undefined || reserve <= limit, {
    message: 'is larger than limit | write at most the limit',
    path: ['reserve'],
  })
  .transform(({ limit, window: milliseconds, reserve = Math.min(DEFAULT_RESERVE, limit), onExceeded, ...shared }) => ({
    limit,
    window: milliseconds,
    reserve,
    onExceeded,
    ...sharedBy(shared),
  }))

export const tokenBudgets = z
  .array(tokenBudget)
  .refine((budgets) => new Set(budgets.map(({ window: of, by }) => JSON.stringify([of, by]))).size === budgets.length, {
    message: 'has two budgets with the same per and window | write one of them',
  })

/** The first group of a limit whose issuer is not configured: it would have no member. */
export function unknownGroup(limit: unknown, issuers: readonly string[]): string | null {
  if (!Array.isArray(limit)) return null
  const groups = (limit as readonly Shared[]).flatMap(({ by }) => (by?.kind === 'group' ? (by.groups ?? []) : []))
  return groups.find((group) => !issuers.includes(group.slice(0, group.indexOf(':')))) ?? null
}

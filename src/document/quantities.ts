/** Values as operators write them: texts, durations, sizes and rates. */
import { z } from 'zod'

export const text = z.string().min(1)

const DURATION_UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }
const SIZE_UNITS: Readonly<Record<string, number>> = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 }

/** Node's timers use 31 bits: a longer delay would fire at once. */
const MAX_DELAY = 2 ** 31 - 1

/** `500ms`, `30s`, `10m`, `2h`; the value is in milliseconds. */
export const duration = z
  .string('is not a duration | write 500ms, 30s, 10m or 2h')
  .regex(/^\d+(?:ms|s|m|h)$/, 'is not a duration | write 500ms, 30s, 10m or 2h')
  .transform((text) => quantity(text, DURATION_UNITS))
  .refine((value) => value <= MAX_DELAY, 'is too long | at most 596h')

const AGE_UNITS: Readonly<Record<string, number>> = { h: 3_600_000, d: 86_400_000 }

/** `12h`, `90d` or `off`; the value is in milliseconds. */
export const ageOrOff = z.union(
  [
    z.literal('off'),
    z
      .string()
      .regex(/^[1-9]\d{0,5}(?:h|d)$/)
      .transform((text) => quantity(text, AGE_UNITS)),
  ],
  'is not an age | write 12h, 90d or off',
)

/** `64KiB`, `64MiB`; the value is in bytes. */
export const size = z
  .string('is not a size | write 64KiB, 64MiB or 1GiB')
  .regex(/^\d+(?:B|KiB|MiB|GiB)$/, 'is not a size | write 64KiB, 64MiB or 1GiB')
  .transform((text) => quantity(text, SIZE_UNITS))

/** `64MiB`: a size as in a file, in the largest unit that has no fraction. */
export function sizeText(bytes: number): string {
  const [unit, factor] = Object.entries(SIZE_UNITS).findLast(([, one]) => bytes >= one && bytes % one === 0) ?? ['B', 1]
  return `${bytes / factor}${unit}`
}

/** The largest JSON text: strings end at 512 MiB, and some texts grow when they are written again. */
const MAX_BODY = 256 * 1024 ** 2

export const bodySize = size.refine((value) => value <= MAX_BODY, 'is too large | at most 256MiB: a body is one string in memory')

/** `60/m`: a number per second, minute or hour; `per` is in milliseconds. */
export const rate = z
  .string('is not a rate | write 60/m, 10/s, 1000/h or off')
  .regex(/^[1-9]\d{0,8}\/(?:s|m|h)$/, 'is not a rate | write 60/m, 10/s, 1000/h or off')
  .transform((text) => {
    const [amount, unit = ''] = text.split('/')
    return { amount: Number(amount), per: DURATION_UNITS[unit] ?? Number.NaN }
  })

function quantity(text: string, units: Readonly<Record<string, number>>): number {
  const unit = text.replace(/^\d+/, '')
  return Number.parseInt(text, 10) * (units[unit] ?? Number.NaN)
}

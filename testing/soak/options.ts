/** The command line of the soak. */
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { UsageError } from '../command.ts'
import { LEAST_MINUTES } from './demands.ts'
import { RESULT } from './page.ts'
import type { SoakOptions } from './result.ts'

export const USAGE = `Runs the gateway for an hour under mixed load, injects faults, and judges every answer.

  npm run soak -- [OPTION…]

Faults: the upstream is killed and restarted, tokens expire, keys rotate, the configuration changes or is broken.
docs/contributing/soak.md says more.

  --minutes  length (default: 60), also a fraction. Memory is judged from ${LEAST_MINUTES} minutes on
  --warm-up  minutes at the beginning that do not count for memory (default: a sixth)
  --workers  of the gateway (default: 1)
  --rate     requests a second, besides the streams (default: 200)
  --streams  streams that are always open (default: 200)
  --out      file of the result (default: testing/bench/results/soak.json)
  --page     writes the result into docs/contributing/soak.md, with its picture
  --read     shows the kept result instead of running
  --keep     keeps the files of the gateway, with its log, and prints their folder

Log and audit of an hour take about half a gigabyte in the temporary folder. They are deleted at the end.

Exit code: 0 if every judged requirement is met, 1 if one is not, 2 for wrong usage.
`

/** What it says. */
export interface Options extends SoakOptions {
  readonly out: string
  readonly page: boolean
  readonly read: boolean
  readonly keep: boolean
}

/**
 * Reads it.
 * @returns null where help is wanted
 * @throws UsageError, or what `parseArgs` throws
 */
export function readOptions(args: readonly string[]): Options | null {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string', default: '60' },
      'warm-up': { type: 'string' },
      workers: { type: 'string', default: '1' },
      rate: { type: 'string', default: '200' },
      streams: { type: 'string', default: '200' },
      out: { type: 'string', default: RESULT },
      page: { type: 'boolean', default: false },
      read: { type: 'boolean', default: false },
      keep: { type: 'boolean', default: false },
      help: { type: 'boolean' },
    },
  })
  if (values.help === true) return null
  const minutes = Number(values.minutes)
  if (!(minutes > 0)) throw new UsageError('--minutes is a number above zero')
  const warmUp = values['warm-up'] === undefined ? minutes / 6 : Number(values['warm-up'])
  if (!(warmUp >= 0 && warmUp < minutes)) throw new UsageError('--warm-up is a number of minutes below --minutes')
  const [workers, rate, streams] = (['workers', 'rate', 'streams'] as const).map((name) => {
    if (!/^[1-9]\d{0,4}$/.test(values[name])) throw new UsageError(`--${name} is a whole number above zero`)
    return Number(values[name])
  }) as [number, number, number]
  const { page, read, keep } = values
  return { minutes, warmUp, workers, rate, streams, out: resolve(values.out), page, read, keep }
}

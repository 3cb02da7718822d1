/** Figures of a real gateway, scraped one after the other, as input series of `promtool test rules`. */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { parse, stringify } from 'yaml'
import { makeFolder } from '../../testing/support/gateway.ts'
import { ROOT } from '../suites/suites.ts'

export const RULES = join(ROOT, 'deploy/observability/threadwarden.rules.yml')

const TEXT = readFileSync(RULES, 'utf8')

const USED = new Set(TEXT.match(/threadwarden_\w+/g))

/** Without this, promtool picks an order for each run: alerts evaluated before the recorded rates see those of a step earlier. */
const ORDER = (parse(TEXT) as { groups: readonly { name: string }[] }).groups.map(({ name }) => name)

export type Scrape = ReadonlyMap<string, number>

const seriesOf = (name: string, labels = ''): string =>
  `${name}{job="threadwarden",instance="gateway"${labels === '' ? '' : `,${labels}`}}`

/** What the rules read of a text of /metrics. Series of promtool begin in 1970: times are relative to the scrape. */
export function scrapeOf(text: string): Scrape {
  const now = Date.now() / 1000
  const lines = text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)
  const own = Array.from(lines, ([, name = '', labels, value]): [string, string, number] => [name, labels ?? '', Number(value)])
  return new Map([
    [seriesOf('up'), 1],
    ...own
      .filter(([name]) => USED.has(name))
      .map(([name, labels, value]): [string, number] => [
        seriesOf(name, labels),
        name.endsWith('_timestamp_seconds') ? Math.round(value - now) : value,
      ]),
  ])
}

/** Also of a gateway that does not answer. */
export async function scrape(healthUrl: string): Promise<Scrape> {
  try {
    return scrapeOf(await (await fetch(`${healthUrl}/metrics`)).text())
  } catch {
    return new Map([[seriesOf('up'), 0]])
  }
}

/** How long something took, by which some rules judge. */
type Times = 'gateway_duration' | 'upstream_first_byte'

/** A busy machine makes every time longer. Of these histograms, each time is taken for short but the one that is the fault. */
function withShortTimes(one: Scrape, slow: Times | undefined): Scrape {
  const pattern = /^threadwarden_(gateway_duration|upstream_first_byte)_seconds_bucket\{/
  return new Map(
    Array.from(one, ([series, value]) => {
      const [, times = slow] = pattern.exec(series) ?? []
      return [series, times === slow ? value : (one.get(series.replace(/le="[^"]*"/, 'le="+Inf"')) ?? value)]
    }),
  )
}

const isCounter = (series: string): boolean => /^\w+_(?:total|count|bucket)\{/.test(series)

/**
 * One scrape a step. After the last one gauges keep their values.
 * @param pace `goes-on`: counters rise as between the last two scrapes
 */
function inputSeries(scrapes: readonly Scrape[], pace: 'holds' | 'goes-on', steps: number): readonly object[] {
  const all = new Set(scrapes.flatMap((one) => [...one.keys()]))
  return Array.from(all, (series) => {
    const values = scrapes.map((one) => one.get(series))
    const [last, before] = [values.at(-1), values.at(-2)]
    const shown = values.map((value) => value ?? '_')
    if (last === undefined) return { series, values: shown.join(' ') }
    const rise = pace === 'goes-on' && isCounter(series) ? last - (before ?? 0) : 0
    return { series, values: [...shown, `${last + rise}+${rise}x${steps}`].join(' ') }
  })
}

export interface Playback {
  readonly scrapes: readonly Scrape[]
  readonly pace?: 'holds' | 'goes-on'
  /** Of a step: one minute by default. */
  readonly interval?: '1m' | '1h'
  /** What takes long: the other times count as short. */
  readonly slow?: Times
  /** The alerts that fire at a step, in order of their names. */
  readonly firing: Readonly<Record<number, readonly string[]>>
}

/** Lets the rules evaluate the series, and compares the alerts that fire. */
export function replays(t: Test, { scrapes, pace = 'holds', interval = '1m', slow, firing }: Playback): void {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const steps = Math.max(...Object.keys(firing).map(Number))
  const file = join(folder, 'test.yml')
  const tests = [
    {
      interval,
      input_series: inputSeries(
        scrapes.map((one) => withShortTimes(one, slow)),
        pace,
        steps,
      ),
      promql_expr_test: Object.entries(firing).map(([step, alerts]) => ({
        eval_time: `${step}${interval.slice(1)}`,
        expr: 'group by (alertname) (ALERTS{alertstate="firing"})',
        exp_samples: alerts.map((alertname) => ({ labels: `{alertname="Threadwarden${alertname}"}`, value: 1 })),
      })),
    },
  ]
  const content = { rule_files: [RULES], evaluation_interval: interval, group_eval_order: ORDER, tests }
  writeFileSync(file, stringify(content, { lineWidth: 0 }))
  const { status, stdout, stderr, error } = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' })
  t.equal(status, 0, `${stdout}${stderr}${error?.message ?? ''}`)
}

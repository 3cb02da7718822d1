/** A real Prometheus (Debian's package `prometheus`) that scrapes gateways. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import { stringify } from 'yaml'
import { freePort } from './free-port.ts'
import { makeFolder } from './gateway.ts'
import { until } from './until.ts'

export interface Scraping {
  /** Health listeners, as `host:port`. */
  readonly targets: readonly string[]
  /** Between two scrapes, and two evaluations of the rules. */
  readonly interval: string
  /** Files of rules; none by default. */
  readonly rules?: readonly string[]
}

/** @returns the base of its API */
export async function startPrometheus(t: Pick<Test, 'teardown'>, { targets, interval, rules = [] }: Scraping): Promise<string> {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'prometheus.yml')
  const scrape = { job_name: 'threadwarden', static_configs: [{ targets }] }
  const global = { scrape_interval: interval, evaluation_interval: interval }
  writeFileSync(file, stringify({ global, rule_files: rules, scrape_configs: [scrape] }))
  const address = `127.0.0.1:${await freePort()}`
  const options = [`--config.file=${file}`, `--storage.tsdb.path=${join(folder, 'data')}`, `--web.listen-address=${address}`]
  const child = spawn('prometheus', options, { stdio: ['ignore', 'ignore', 'pipe'] })
  const said = text(child.stderr)
  const ended = once(child, 'close')
  t.teardown(async () => {
    child.kill('SIGTERM')
    await ended
  })
  const isReady = async (): Promise<boolean> => {
    if (child.exitCode !== null) throw new Error(await said)
    return fetch(`http://${address}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    )
  }
  await until(isReady)
  return `http://${address}/api/v1`
}

/** A Prometheus with the shipped alert rules, which scrapes one gateway: some rules sum over all that they find. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { freePort } from '../support/free-port.ts'
import { makeFolder } from '../support/gateway.ts'
import type { Scope } from '../support/program.ts'
import { until } from '../support/until.ts'

export interface Alert {
  readonly name: string
  readonly severity: string
}

export interface Prometheus {
  /** Those that fire now. */
  readonly firing: () => Promise<readonly Alert[]>
}

/** @param target the health listener of the gateway, as `host:port` */
export async function startPrometheus(scope: Scope, rules: string, target: string): Promise<Prometheus> {
  const { folder, remove } = makeFolder()
  const port = await freePort()
  const config = {
    global: { scrape_interval: '5s', evaluation_interval: '5s' },
    rule_files: [rules],
    scrape_configs: [{ job_name: 'threadwarden', static_configs: [{ targets: [target] }] }],
  }
  writeFileSync(join(folder, 'prometheus.yml'), stringify(config))
  const child = spawn(
    'prometheus',
    [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdio: 'ignore' },
  )
  const closed = once(child, 'close')
  scope.teardown(async () => {
    child.kill('SIGKILL')
    await closed
    remove()
  })
  const ask = (path: string): Promise<Response> => fetch(`http://127.0.0.1:${port}${path}`)
  await until(() =>
    ask('/-/ready').then(
      ({ ok }) => ok,
      () => false,
    ),
  )
  return {
    async firing() {
      const { data } = (await (await ask('/api/v1/alerts')).json()) as {
        readonly data: {
          readonly alerts: readonly { readonly state: string; readonly labels: Readonly<Record<string, string>> }[]
        }
      }
      return data.alerts
        .filter(({ state }) => state === 'firing')
        .map(({ labels: { alertname = '', severity = '' } }) => ({ name: alertname, severity }))
    },
  }
}

/** Injects each fault into a deployment of its own, all at the same time, and waits for the alerts. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Scope } from '../support/program.ts'
import { CREDENTIAL, startDeployment } from './deployment.ts'
import type { Fault } from './faults.ts'
import { picture } from './picture.ts'
import { startPrometheus } from '../support/prometheus.ts'

export interface Exercised {
  readonly fault: Fault
  /** The alerts that fired after the fault, with the seconds until then, the first one first. */
  readonly fired: readonly { readonly alert: string; readonly severity: string; readonly seconds: number }[]
  /** Those that fired before it: false alarms. */
  readonly before: readonly string[]
  /** The answer of /readyz at the end. */
  readonly readyz: string
}

export interface ExerciseOptions {
  readonly rules: string
  /** Milliseconds of healthy traffic before the faults. */
  readonly healthy: number
  /** Milliseconds that an alert may take. */
  readonly patience: number
  /** The folder for pictures of the console; null for none. */
  readonly pictures: string | null
}

/** How often Prometheus is asked, in milliseconds. */
const ASK_EVERY = 5000

export async function exercise(
  scope: Scope,
  fault: Fault,
  { rules, healthy, patience, pictures }: ExerciseOptions,
): Promise<Exercised> {
  const { config = {}, inject } = fault.prepare(scope)
  const deployment = await startDeployment(scope, config)
  const prometheus = await startPrometheus(scope, {
    targets: [new URL(deployment.health).host],
    interval: '5s',
    rules: [rules],
  })
  await sleep(healthy)
  const before = (await firingAt(prometheus)).map(({ name }) => name)
  await inject(deployment)
  const injected = Date.now()
  const fired: Exercised['fired'][number][] = []
  const isExpected = ({ alert }: Exercised['fired'][number]): boolean => fault.alerts.includes(alert)
  while (!fired.some(isExpected) && Date.now() - injected < patience) {
    await sleep(ASK_EVERY)
    for (const { name, severity } of await firingAt(prometheus)) {
      if (before.includes(name) || fired.some(({ alert }) => alert === name)) continue
      fired.push({ alert: name, severity, seconds: Math.round((Date.now() - injected) / 1000) })
    }
  }
  if (pictures !== null) {
    const name = fault.name.replaceAll(/[^a-z]+/g, '-')
    await picture(deployment.admin, CREDENTIAL, fault.view, join(pictures, `game-day-${name}.png`))
  }
  const readyz = await (await fetch(`${deployment.health}/readyz`)).text()
  await deployment.stop()
  return { fault, fired, before, readyz }
}

interface Alert {
  readonly name: string
  readonly severity: string
}

/** @param prometheus of one gateway: some rules sum over all that they find */
async function firingAt(prometheus: string): Promise<readonly Alert[]> {
  const { data } = (await (await fetch(`${prometheus}/alerts`)).json()) as {
    readonly data: { readonly alerts: readonly { readonly state: string; readonly labels: Readonly<Record<string, string>> }[] }
  }
  return data.alerts
    .filter(({ state }) => state === 'firing')
    .map(({ labels: { alertname = '', severity = '' } }) => ({ name: alertname, severity }))
}

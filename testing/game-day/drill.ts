/** Gateways with faults for a person to practise on: all that an operator would get, and not the name of the fault. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Scope } from '../support/program.ts'
import { CREDENTIAL, startDeployment } from './deployment.ts'
import type { Fault } from './faults.ts'

/** Milliseconds of healthy traffic before the fault, so that there are owners and decisions. */
const HEALTHY_MS = 5000

/** @returns the alert, and where the gateway is */
export async function drill(scope: Scope, fault: Fault): Promise<string> {
  const { config = {}, inject } = fault.prepare(scope)
  const deployment = await startDeployment(scope, config)
  const { admin, file, health } = deployment
  scope.teardown(() => deployment.stop())
  await sleep(HEALTHY_MS)
  await inject(deployment)
  return [
    `alert:         ${fault.alerts[0]}`,
    `configuration: ${file}`,
    `health:        ${health}`,
    `console:       ${admin}/console`,
    `credential:    ${CREDENTIAL}`,
  ].join('\n')
}

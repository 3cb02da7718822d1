/** The faults that an operator meets, and the alerts that should report each of them. */
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { PAIRS_EVERYWHERE } from '../support/pair.ts'
import type { Scope } from '../support/program.ts'
import { secureFiles } from '../support/secure.ts'
import { startUpstream } from '../support/upstream.ts'
import { HEALTHY, removeStore, type Deployment } from './deployment.ts'

export interface Fault {
  readonly name: string
  /** Any of these reports it. */
  readonly alerts: readonly string[]
  /** The view of the console that shows it. */
  readonly view: 'overview' | 'decisions'
  /** The page, from the root of the documentation, that solves it. */
  readonly runbook: string
  /** Prepares it: with what differs in the configuration, and what happens to the deployment. */
  readonly prepare: (scope: Scope) => {
    readonly config?: Readonly<Record<string, unknown>>
    readonly inject: (deployment: Deployment) => void | Promise<void>
  }
}

const SINGLE_ROUTE = PAIRS_EVERYWHERE.find(({ upstream }) => upstream === 'single-route')

/** Until a certificate expires, in milliseconds: it is valid when the gateway loads it. */
const SOON = 30_000

export const FAULTS: readonly Fault[] = [
  {
    name: 'the issuer is down',
    view: 'overview',
    alerts: ['ThreadwardenIssuerKeysStale'],
    runbook: 'how-to/operate/keys-cannot-be-fetched.md',
    prepare: () => ({ inject: ({ issuer }) => void issuer.answers.set('/jwks', { hangUp: true }) }),
  },
  {
    name: 'the issuer signs with a key that it does not publish',
    view: 'decisions',
    alerts: ['ThreadwardenRefusalsJump'],
    runbook: 'how-to/operate/keys-cannot-be-fetched.md',
    prepare: () => ({ inject: (deployment) => deployment.signWithUnknownKey() }),
  },
  {
    name: 'another process locks the store',
    view: 'overview',
    alerts: ['ThreadwardenStoreUnavailable'],
    runbook: 'how-to/operate/store-is-down.md',
    prepare: (scope) => ({
      inject({ folder }) {
        const other = new Database(join(folder, 'ownership.db'), { timeout: 10_000 })
        other.exec('BEGIN IMMEDIATE')
        scope.teardown(() => other.close())
      },
    }),
  },
  {
    name: 'the store is deleted',
    view: 'overview',
    alerts: ['ThreadwardenStoreUnavailable'],
    runbook: 'how-to/operate/store-is-down.md',
    prepare: () => ({ inject: removeStore }),
  },
  {
    name: 'the upstream takes ten seconds',
    view: 'decisions',
    alerts: ['ThreadwardenUpstreamSlow'],
    runbook: 'how-to/operate/incident.md',
    prepare: () => ({
      inject: ({ upstream }) =>
        upstream.answer(async (request, response) => {
          await sleep(10_000)
          return HEALTHY(request, response)
        }),
    }),
  },
  {
    name: 'an upstream of the other transport takes its place',
    view: 'overview',
    alerts: ['ThreadwardenUpstreamUnknown', 'ThreadwardenUpstreamErrors'],
    runbook: 'how-to/operate/incident.md',
    prepare: (scope) => ({
      async inject({ upstream }) {
        const port = Number(new URL(upstream.url).port)
        await upstream.close()
        const other = await startUpstream(HEALTHY, { pair: SINGLE_ROUTE, port, basePath: '/api/copilotkit' })
        // It notes each request of the first transport as a fault.
        scope.teardown(() => other.close().catch(() => {}))
      },
    }),
  },
  {
    name: 'a change of the policy has an error',
    view: 'overview',
    alerts: ['ThreadwardenReloadRefused'],
    runbook: 'how-to/operate/reload.md',
    prepare: () => ({
      inject({ file }) {
        const tree = JSON.parse(readFileSync(file, 'utf8')) as object
        const policy = 'version: 1\nrules:\n  - { routes: [agent/rum], allow: [signed-in] }\n'
        writeFileSync(join(dirname(file), 'policy.yaml'), policy)
        writeFileSync(file, JSON.stringify({ ...tree, policy: './policy.yaml' }))
      },
    }),
  },
  {
    name: 'the certificate expires',
    view: 'overview',
    alerts: ['ThreadwardenCertificateExpired', 'ThreadwardenCertificateExpires'],
    runbook: 'how-to/deploy/tls.md',
    prepare(scope) {
      const files = secureFiles(scope)
      return {
        config: files.listen(),
        inject: () => files.write(files.authority.issue({ usage: 'server', until: new Date(Date.now() + SOON) })),
      }
    },
  },
]

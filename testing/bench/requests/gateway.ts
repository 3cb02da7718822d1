/** The rows of the gateway: the whole of it, as it is run, `dist/cli.js serve` with everything on that a deployment has on. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { startServing } from '../serving.ts'
import { BASE, GRAPHS } from './loads.ts'
import { ALL_OWNED, TOKEN_CACHE } from './people.ts'
import type { Row, Setting } from './row.ts'
import { ISSUER, ISSUER_KEY } from './tokens.ts'

/** This checkout. */
export const ROOT = join(import.meta.dirname, '../../..')

/** Where a built checkout is, and how it is shown. */
export interface Checkout {
  readonly name: string
  readonly title: string
  readonly folder: string
}

/** In what it is other than a plain gateway. */
export interface Variant {
  /** It writes an audit file. */
  readonly audit?: boolean
  /** So many processes serve; one unless it is said. */
  readonly workers?: number
}

/** The row of a checkout. */
export function gatewayRow({ name, title, folder }: Checkout, variant: Variant = {}): Row {
  const program = join(folder, 'dist/cli.js')
  return {
    name,
    title,
    version: () => (JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string }).version,
    start: (setting) =>
      startServing({
        program,
        folder: setting.folder,
        configuration: configuration(setting, variant),
        owned: ALL_OWNED,
      }),
  }
}

/** One process that serves with and without metrics, audit and traces (signals/switch.ts). */
export const switchedRow = {
  name: 'gateway-switched',
  start: (setting: Setting) =>
    startServing({
      program: join(ROOT, 'dist/cli.js'),
      folder: setting.folder,
      configuration: configuration(setting, { audit: true }),
      owned: ALL_OWNED,
      node: ['--import', pathToFileURL(join(ROOT, 'testing/bench/signals/switch.ts')).href],
      environment: tracing(setting),
    }),
}

/** OpenTelemetry, "Environment Variable Specification". */
function tracing({ upstreamPort }: Setting): Readonly<Record<string, string>> {
  return {
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${upstreamPort}`,
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.1',
  }
}

/**
 * Everything else is as it is without being said: the shipped policy, the metrics, the sizes. Of the limits those are off that
 * would refuse what one caller sends here in a minute.
 */
function configuration({ upstreamPort, publicKeyFile }: Setting, { audit = false, workers }: Variant): object {
  return {
    version: 1,
    listen: { host: '127.0.0.1', port: 0 },
    health: { host: '127.0.0.1', port: 0 },
    upstream: { url: `http://127.0.0.1:${upstreamPort}`, basePath: BASE, transport: 'multi-route' },
    // Its threads are those of the other upstream, so that one import serves both.
    upstreams: {
      graphs: {
        kind: 'langgraph',
        url: `http://127.0.0.1:${upstreamPort}`,
        basePath: GRAPHS,
        publicPath: GRAPHS,
        scope: 'upstream',
      },
    },
    authentication: { tokenCache: TOKEN_CACHE, issuers: { [ISSUER_KEY]: { ...ISSUER, publicKeyFile } } },
    ownership: { store: 'sqlite:./ownership.db', unknownThread: 'claim' },
    limits: { newThreads: 'off', requests: 'off', grants: 'off', runs: 'off', streams: 'off' },
    log: { level: 'info' },
    ...(workers === undefined ? {} : { workers }),
    ...(audit ? { audit: { to: 'file', file: './audit.jsonl' } } : {}),
  }
}

/** `threadwarden serve`: runs the gateway until a signal stops it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { startGateway, type Gateway } from '../gateway/start.ts'
import { connectServiceManager, keepWatchdog, passedSocketFault, socketKindFault } from '../gateway/service-manager.ts'
import { nodeOptions, oldSpace, roomWarning } from '../gateway/memory-budgets.ts'
import { bodyMemoryWarning } from '../http/pipeline/request-body.ts'
import { makeLog, ownStdout, sharedStdout, type Logger, type LogForm } from '../observe/log.ts'
import { loadTracing } from '../observe/load-tracing.ts'
import type { Tracing } from '../observe/traces.ts'
import { packageVersion } from '../observe/version.ts'
import type { Config } from '../config/schema.ts'
import type { Outcome } from '../document/document.ts'
import { prepare, type Prepared } from '../snapshot/load.ts'
import { watchFiles } from '../snapshot/reload.ts'
import { configFile, printErrors } from './input-files.ts'
import { CommandFailed, CONFIG, defineCommand, EXIT, flag } from './command.ts'
import type { Terminal } from './terminal.ts'

/** Kubernetes' own default, in seconds. */
const DEFAULT_GRACE_S = 30
/** The part of the grace period for closing after the streams ended, in seconds. */
const MARGIN_S = 5

export const command = defineCommand({
  about: `Runs the gateway. Log lines go to stdout as JSON. The line "listening" names the bound addresses.

SIGTERM and SIGINT stop the gateway, and /readyz fails at once. After SIGTERM the gateway accepts requests for shutdown.delay, so
that load balancers notice the stop. Then it refuses new requests and waits for running ones. It ends open streams with a
RUN_ERROR event ${MARGIN_S} s before the end of the grace period (TERMINATION_GRACE_PERIOD_SECONDS, default ${DEFAULT_GRACE_S}). A second signal
ends the process at once.

The gateway watches the configuration, its policies, secrets, keys and certificates. It applies a change as a whole within two
seconds and does not interrupt requests. SIGHUP and POST /reload of the admin API apply a change at once. The gateway does not
apply an invalid change: the log, /readyz and a metric report it. Changes of listeners, workers, audit and the store need a restart.

As a systemd service with Type=notify, the gateway reports when it is ready, reloads and stops. It is ready when it listens and has
fetched the keys of every issuer, or failed to fetch them once. With WatchdogSec=, systemd restarts it if its event loop or a worker
does not answer. With listen.fd, it takes the socket of a .socket unit.`,
  options: { config: CONFIG, pretty: flag('writes log lines for people instead of JSON') },
  exitCodes: {
    0: 'stopped by a signal',
    1: 'the start failed',
    78: 'invalid configuration: a new attempt fails in the same way',
  },
  examples: [
    'threadwarden serve',
    'threadwarden serve --pretty',
    'threadwarden serve --config /etc/threadwarden/threadwarden.yaml',
  ],

  async run(values, terminal) {
    const file = configFile(terminal, values)
    let gateway: Gateway | undefined
    let tracing: Tracing | null = null
    const outcome = prepare(file, terminal.env)
    if (!outcome.ok) {
      printErrors(terminal, outcome.faults, values)
      return EXIT.configuration
    }
    const prepared = outcome.value
    let { states } = outcome
    const { config, warnings } = prepared
    const form = values.pretty ? 'pretty' : 'json'
    const log = makeLog(config.log.level, config.workers === 1 ? ownStdout(form) : sharedStdout(form))
    for (const warning of warnings) log.warn(warning, 'configuration')
    if (config.shutdown.delay > 0 && config.shutdown.delay >= timeToDrain(terminal))
      log.warn(
        { delayMs: config.shutdown.delay, deadlineMs: timeToDrain(terminal) },
        'shutdown.delay takes the whole grace period, so open streams are cut: increase TERMINATION_GRACE_PERIOD_SECONDS',
      )
    const room = roomWarning({ constrained: process.constrainedMemory(), options: nodeOptions() })
    if (room !== null) log.warn(room)
    const bodies = bodyMemoryWarning(oldSpace(), config.limits)
    if (bodies !== null) log.warn(bodies)
    // Before the start: process 1 of a container would not notice a signal without a handler.
    const stopSignal = firstSignal()
    const manager = connectServiceManager(terminal.env, log)
    const reload = async (started: Gateway, cause: string): Promise<void> => {
      manager?.notify('RELOADING=1')
      const { outcome: result, generation } = await started.reload(cause)
      manager?.notify(statusOf(started, generation, result === 'refused'), 'READY=1')
    }
    process.on('SIGHUP', () => {
      gateway?.reopenAudit()
      if (gateway !== undefined) void reload(gateway, 'SIGHUP')
    })
    const { fd } = config.listen
    const socketFault = fd === undefined ? null : (passedSocketFault(fd, terminal.env) ?? socketKindFault(fd))
    if (socketFault !== null) throw new CommandFailed(`error: listen.fd: ${socketFault}`)
    try {
      ;({ gateway, tracing } = await start(prepared, { log, form, env: terminal.env }, () => {
        const next = prepare(file, terminal.env)
        states = next.states
        return next
      }))
    } catch (error) {
      throw new CommandFailed(`error: ${startFailure(error, config)}`)
    }
    log.info(
      {
        url: gateway.url,
        health: gateway.healthUrl,
        ...(gateway.adminUrl === null ? {} : { admin: gateway.adminUrl }),
        mode: config.authentication.mode,
        unknownThread: config.ownership.unknownThread,
        enforcement: config.enforcement,
        ...(config.workers === 1 ? {} : { workers: config.workers }),
        policy: prepared.policy.hash,
        configuration: prepared.digest,
        version: packageVersion(),
      },
      'listening',
    )
    const unwatch = watchFiles(
      () => states,
      () => reload(gateway, 'file'),
    )
    const over = new AbortController()
    if (manager !== null) {
      manager.notify(statusOf(gateway, 1, false))
      const isReady = await Promise.race([gateway.keysAttempted().then(() => true), stopSignal.then(() => false)])
      if (isReady) manager.notify('READY=1')
      void keepWatchdog(manager, () => gateway.answers(), over.signal)
    }
    const signal = await stopSignal
    manager?.notify('STATUS=draining', 'STOPPING=1')
    unwatch()
    await drain(gateway, signal, timeToDrain(terminal), log)
    await tracing?.stop()
    over.abort()
    return EXIT.fine
  },
})

/** Starts it in one process or in several; the modules that this needs are loaded only then. */
async function start(
  prepared: Prepared,
  { log, form, env }: { readonly log: Logger; readonly form: LogForm; readonly env: NodeJS.ProcessEnv },
  again: () => Outcome<Prepared>,
): Promise<{ readonly gateway: Gateway; readonly tracing: Tracing | null }> {
  if (prepared.config.workers !== 1) {
    const { startWorkers, workersOf } = await import('../gateway/workers/primary.ts')
    // Each worker traces its own requests.
    if (workersOf(prepared.config) > 1)
      return { gateway: await startWorkers(prepared, log, { prepare: again, logForm: form }), tracing: null }
  }
  const tracing = await loadTracing(env, log)
  return { gateway: await startGateway(prepared, log, { prepare: again, tracing }), tracing }
}

/** What `systemctl status` shows. */
function statusOf({ url }: Gateway, generation: number, isRefused: boolean): string {
  const refused = isRefused ? '; the last change was refused, the log has the errors' : ''
  return `STATUS=listening on ${url}, configuration generation ${generation}${refused}`
}

/** Names the key of the listener that could not be opened. */
export function startFailure(error: unknown, { listen, health, admin }: Config): string {
  const message = error instanceof Error ? error.message : String(error)
  const [, code = '', address = ''] = /\b(?:listen|bind) (EADDRINUSE|EACCES|EADDRNOTAVAIL)\b.* (\S+)$/.exec(message) ?? []
  const listeners = Object.entries({ listen, health, ...(admin === undefined ? {} : { admin }) })
  const [key = '', { host, port } = { host: '', port: 0 }] = listeners.find(([, one]) => address.endsWith(`:${one.port}`)) ?? []
  if (key === '') return message
  switch (code) {
    case 'EADDRINUSE':
      return `${key}.port: another process listens on ${address} (stop it, or write another port)`
    case 'EACCES':
      return `${key}.port: this user may not listen on port ${port} (write a port from 1024)`
    default:
      return `${key}.host: this machine does not have the address ${host} (write 0.0.0.0, or an address of this machine)`
  }
}

/** Resolves with the first signal to stop; a second signal ends the process at once. */
async function firstSignal(): Promise<string> {
  const signals = ['SIGTERM', 'SIGINT'] as const
  const signal = await new Promise<string>((resolve) => {
    for (const name of signals) process.once(name, resolve)
  })
  for (const name of signals) process.once(name, () => process.exit(EXIT.failure))
  return signal
}

async function drain(gateway: Gateway, signal: string, deadline: number, log: Logger): Promise<void> {
  // A person at a terminal sends SIGINT, so nothing needs time to notice the stop.
  const delay = signal === 'SIGINT' ? 0 : Math.min(gateway.config().shutdown.delay, deadline)
  log.info({ signal, delayMs: delay, deadlineMs: deadline }, 'draining')
  await gateway.stop(deadline, sleep(delay))
  log.info('stopped')
}

/** The part of the grace period before the end of the last stream, in milliseconds. */
function timeToDrain({ env }: Terminal): number {
  const grace = Number(env['TERMINATION_GRACE_PERIOD_SECONDS'] ?? DEFAULT_GRACE_S)
  return Math.max(0, (Number.isFinite(grace) ? grace : DEFAULT_GRACE_S) - MARGIN_S) * 1000
}

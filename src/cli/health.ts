/** `threadwarden health`: asks the health listener of a running gateway, for probes that run a command. */
import { isObject, type Json } from '../core/json/read.ts'
import { healthListener, originOf } from '../config/health-listener.ts'
import { duration } from '../document/quantities.ts'
import { askListener, givenOrigin } from './ask-listener.ts'
import { CommandFailed, CONFIG, defineCommand, EXIT, jsonFlag, UsageError, value } from './command.ts'
import { configFile, printErrors, type ConfigOptions } from './input-files.ts'
import { complain, harmless, print, printData, type Terminal } from './terminal.ts'

const PATHS = { ready: '/readyz', live: '/livez', startup: '/startupz' } as const

const MAX_BYTES = 64 * 1024

export const command = defineCommand({
  about: `Asks the health listener of a running gateway. Use it where a probe runs a command: HEALTHCHECK of a container image, exec probes of
Kubernetes, or a script. It needs no shell and no curl.

The address comes from health.host and health.port of the configuration. Errors in other keys do not matter: the gateway may
still serve an earlier configuration.`,
  options: {
    config: CONFIG,
    url: value('URL', 'asks this address instead of that of the configuration, for example http://127.0.0.1:8081'),
    probe: { ...value('NAME', 'ready, live or startup'), default: 'ready' },
    timeout: { ...value('TIME', 'the time limit'), default: '3s' },
    json: jsonFlag('{"healthy", "status", "answer"}, or "error" instead of "answer"'),
  },
  exitCodes: { 0: 'healthy', 1: 'not healthy, or no answer' },
  examples: ['threadwarden health', 'threadwarden health --probe live', 'threadwarden health --url http://127.0.0.1:8081'],

  async run(values, terminal) {
    const path = Object.hasOwn(PATHS, values.probe) ? PATHS[values.probe as keyof typeof PATHS] : undefined
    if (path === undefined) throw new UsageError(`--probe must be one of: ${Object.keys(PATHS).join(', ')}`)
    const limit = duration.safeParse(values.timeout)
    if (!limit.success || limit.data === 0)
      throw new UsageError(`--timeout ${values.timeout} is not a duration: write 500ms, 3s or 1m`)
    const origin = values.url === undefined ? configuredOrigin(terminal, values) : givenOrigin(values.url, 'health', 8081)
    const asked = await ask(origin + path, limit.data)
    const healthy = asked.status === 200
    if (values.json) printData(terminal, { healthy, ...asked })
    else if (healthy) print(terminal, values.probe)
    else complain(terminal, `not ${values.probe}: ${harmless(reasonOf(asked))}`)
    return healthy ? EXIT.fine : EXIT.failure
  },
})

function configuredOrigin(terminal: Terminal, options: ConfigOptions): string {
  const file = configFile(terminal, options)
  const listener = healthListener(file, terminal.env)
  if (!listener.ok) {
    printErrors(terminal, listener.faults, options)
    throw new CommandFailed()
  }
  const origin = originOf(listener.value)
  if (origin === null) throw new CommandFailed(`health.port is 0 in ${file}: pass the address with --url`)
  return origin
}

type Asked = { readonly status: number; readonly answer: Json } | { readonly status: null; readonly error: string }

async function ask(url: string, timeoutMs: number): Promise<Asked> {
  try {
    const { status, text } = await askListener(url, { timeoutMs, mostBytes: MAX_BYTES })
    return { status, answer: parsed(text) }
  } catch (error) {
    return { status: null, error: error instanceof Error ? error.message : String(error) }
  }
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    return null
  }
}

function reasonOf(asked: Asked): string {
  if (asked.status === null) return `no answer (${asked.error})`
  const { status, answer } = asked
  const pending = isObject(answer) && isObject(answer['pending']) ? Object.entries(answer['pending']) : []
  const reasons = pending.map(([name, why]) => `${name}: ${typeof why === 'string' ? why : JSON.stringify(why)}`)
  return reasons.length === 0 ? `the answer was ${status}` : reasons.join('; ')
}

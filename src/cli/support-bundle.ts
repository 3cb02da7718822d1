/** `threadwarden support-bundle`: one file for the person who helps, without secrets, names and ids. */
import { closeSync, constants, fstatSync, openSync, readFileSync, readSync, writeSync } from 'node:fs'
import { arch, availableParallelism, platform, release, totalmem } from 'node:os'
import { buffer } from 'node:stream/consumers'
import { parse } from 'yaml'
import { z } from 'zod'
import { healthListener, originOf } from '../config/health-listener.ts'
import { configSchema } from '../config/schema.ts'
import type { Json } from '../core/json/read.ts'
import { ownAddresses } from '../http/upstream/exposure.ts'
import { packageVersion } from '../observe/version.ts'
import { prepare, type Prepared } from '../snapshot/load.ts'
import { readMounts } from '../store/durability.ts'
import { examine } from '../tools/doctor/examine.ts'
import { routesOf } from '../tools/simulate/routes.ts'
import { withoutNames, type Schema } from '../tools/support/configuration.ts'
import { logPart } from '../tools/support/log-lines.ts'
import { samplesOf } from '../tools/support/metrics.ts'
import { makePseudonyms, type Pseudonyms } from '../tools/support/pseudonyms.ts'
import { askListener } from './ask-listener.ts'
import { CommandFailed, CONFIG, defineCommand, EXIT, UsageError, value } from './command.ts'
import { configFile } from './input-files.ts'
import { complain, write, type Terminal } from './terminal.ts'

const LOG_LINES = 500
const LOG_BYTES = 1024 * 1024
const ANSWER_MS = 5000
const ANSWER_BYTES = 8 * 1024 * 1024
const DOCTOR_MS = 5000

export const command = defineCommand({
  about: `Writes one JSON file for the person who helps you: configuration and policy, versions, the findings of the doctor, the metrics, and the
last lines of the log. It keeps only values that tell nothing: names, addresses, ids, claims and free texts are replaced by
counted names such as <user 2>, and values of references are not read. Read the file before you send it.

A part that cannot be collected has an error in its place. The command changes nothing.`,
  options: {
    config: CONFIG,
    log: value('FILE', `a file with the log of the gateway, of which the last ${LOG_LINES} lines are taken; - for stdin`),
    out: value(
      'FILE',
      'where to write; it must not exist; - for stdout (default: threadwarden-support-TIME.json in this folder)',
    ),
  },
  exitCodes: { 0: 'written', 1: 'the file could not be written' },
  examples: ['threadwarden support-bundle', 'kubectl logs POD | threadwarden support-bundle --log - --out bundle.json'],

  async run(values, terminal) {
    const file = configFile(terminal, values)
    const out = values.out ?? `threadwarden-support-${new Date().toISOString().replaceAll(/[:.]/g, '-')}.json`
    // Before the work, so that a wrong name is told at once.
    const target = out === '-' ? null : openNew(out)
    const text = `${JSON.stringify(await collect(file, values.log, terminal), null, 2)}\n`
    if (target === null) {
      write(terminal, text)
      return EXIT.fine
    }
    writeSync(target, text)
    closeSync(target)
    complain(terminal, `${out}: ${Math.ceil(text.length / 1024)} KiB. Read it before you send it.`)
    return EXIT.fine
  },
})

/** Only its owner may read it, and no other file or link is written to. */
function openNew(path: string): number {
  try {
    return openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new CommandFailed(
      `error: ${path} ${code === 'EEXIST' ? 'exists: name another file with --out' : `cannot be written (${code})`}`,
    )
  }
}

async function collect(file: string, log: string | undefined, terminal: Terminal): Promise<object> {
  const pseudonyms = makePseudonyms()
  const prepared = prepare(file, terminal.env)
  const section = async (make: () => unknown): Promise<unknown> => {
    try {
      return await make()
    } catch (error) {
      return { error: kindOf(error) }
    }
  }
  return {
    about: 'threadwarden support bundle: <…> stands for a removed text',
    createdAt: new Date().toISOString(),
    versions: versions(),
    configuration: await section(() => configurationPart(file, pseudonyms)),
    faults: prepared.ok ? [] : prepared.faults.map(({ line }) => ({ line: line ?? null })),
    policy: await section(() => (prepared.ok ? policyPart(prepared.value) : null)),
    doctor: await section(() => (prepared.ok ? doctorPart(prepared.value, pseudonyms) : null)),
    gateway: await section(() => gatewayPart(file, terminal.env, pseudonyms)),
    log: await section(async () => (log === undefined ? null : logPart(await lastLines(log, terminal), pseudonyms))),
  }
}

/** Never the text of an error, which may quote a file or an answer. */
function kindOf(error: unknown): string {
  if (error instanceof UsageError || error instanceof CommandFailed) return error.message
  const { code, name } = error as { readonly code?: string; readonly name?: string }
  return code ?? name ?? 'failed'
}

function versions(): object {
  return {
    threadwarden: packageVersion(),
    node: process.version,
    system: `${platform()} ${arch()} ${release().replace(/[^\d.].*$/, '')}`,
    cores: availableParallelism(),
    memory: totalmem(),
    memoryLimit: process.constrainedMemory(),
    libraries: z.object({ dependencies: z.record(z.string(), z.string()) }).parse(packageFile()).dependencies,
  }
}

function packageFile(): unknown {
  return JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
}

/** As it was written: references are not followed, so their values cannot be in it. */
function configurationPart(file: string, pseudonyms: Pseudonyms): Json {
  const written = parse(readFileSync(file, 'utf8')) as Json
  const schema = z.toJSONSchema(configSchema, { io: 'input', unrepresentable: 'any', reused: 'inline' }) as Schema
  return withoutNames(written, schema, pseudonyms)
}

/** Without the hash: a person who guesses the names in the file could prove the guess by it. */
function policyPart({ config, policy }: Prepared): object {
  const upstreams = new Map<string, number>()
  return {
    routes: routesOf(config, policy).map(({ upstream, route, method, closed, access }) => {
      if (!upstreams.has(upstream)) upstreams.set(upstream, upstreams.size + 1)
      return {
        upstream: upstreams.get(upstream),
        route,
        method,
        closed,
        rules: access.map(({ effect, who, threads, agents, conditions, rule }) => ({
          effect,
          who,
          threads,
          agents: agents === null ? 'all' : agents.length,
          conditions: conditions.length,
          line: rule.line ?? null,
        })),
      }
    }),
  }
}

/** Check and level are parts of the program; docs/reference/doctor-findings.md has the meaning of each. */
async function doctorPart(prepared: Prepared, pseudonyms: Pseudonyms): Promise<object> {
  const machine = { mounts: readMounts(), addresses: ownAddresses() }
  const found = await examine(prepared, { timeout: DOCTOR_MS, token: null, url: null, run: null, quiet: 0 }, machine)
  return found.map(({ check, level }) => {
    const [name = '', key] = check.split(':')
    return { check: key === undefined ? name : `${name}:${pseudonyms.of('upstream', key)}`, level }
  })
}

async function gatewayPart(file: string, env: NodeJS.ProcessEnv, pseudonyms: Pseudonyms): Promise<object> {
  const listener = healthListener(file, env)
  const origin = listener.ok ? originOf(listener.value) : null
  if (origin === null) throw new CommandFailed('the address of the health listener is not known')
  const get = (path: string) => askListener(origin + path, { timeoutMs: ANSWER_MS, mostBytes: ANSWER_BYTES })
  const [ready, metrics] = await Promise.all([get('/readyz'), get('/metrics')])
  const answer = z
    .object({ pending: z.record(z.string(), z.unknown()), notes: z.record(z.string(), z.unknown()).optional() })
    .safeParse(parsed(ready.text))
  const names = (of: Readonly<Record<string, unknown>> = {}): readonly string[] =>
    Object.keys(of).map((condition) => {
      const [name = '', key] = condition.split(':')
      return key === undefined ? name : `${name}:${pseudonyms.of('upstream', key)}`
    })
  return {
    ready: ready.status === 200,
    pending: names(answer.data?.pending),
    notes: names(answer.data?.notes),
    metrics: samplesOf(metrics.text, pseudonyms),
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

async function lastLines(log: string, { stdin }: Terminal): Promise<readonly string[]> {
  const bytes = log === '-' ? (await buffer(stdin)).subarray(-LOG_BYTES) : lastBytes(log)
  const lines = bytes
    .toString('utf8')
    .split('\n')
    .filter((line) => line.trim() !== '')
  // The first line is cut where more came before.
  return lines.slice(bytes.length === LOG_BYTES ? 1 : 0).slice(-LOG_LINES)
}

function lastBytes(file: string): Buffer {
  const descriptor = openSync(file, 'r')
  try {
    const { size } = fstatSync(descriptor)
    const bytes = Buffer.alloc(Math.min(size, LOG_BYTES))
    return bytes.subarray(0, readSync(descriptor, bytes, 0, bytes.length, size - bytes.length))
  } finally {
    closeSync(descriptor)
  }
}

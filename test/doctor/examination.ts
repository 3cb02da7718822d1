/** Examinations of what a test has started, by a configuration as an operator would write it. */
import type { Test } from 'tap'
import { examine } from '../../src/tools/doctor/examine.ts'
import { CONFIGURATION_HEADER } from '../../src/http/listeners/health.ts'
import type { Finding } from '../../src/tools/doctor/finding.ts'
import type { Machine, Wishes } from '../../src/tools/doctor/subject.ts'
import { prepare } from '../../src/snapshot/load.ts'
import { configFile } from '../../testing/support/program.ts'
import type { Changes } from '../../testing/support/configuration.ts'
import { QUIET } from './machine.ts'

/** What differs from the usual. */
export interface Differing {
  readonly wishes?: Partial<Wishes>
  readonly machine?: Partial<Machine>
  readonly clock?: () => number
  /** Of the examined configuration; by default that of the gateway that runs, whose file is another. */
  readonly digest?: string
}

/** What was found. */
export interface Findings {
  readonly all: readonly Finding[]
  /** The one finding of a check. */
  readonly of: (check: string) => Finding
  /** All of its findings. */
  readonly each: (check: string) => readonly Finding[]
}

/**
 * Examines.
 * @param t the test, with which the configuration goes
 * @param changes of the configuration; the upstream is `upstream.url`
 */
export async function examined(t: Test, changes: Changes = {}, differing: Differing = {}): Promise<Findings> {
  const prepared = prepare(configFile(t, changes).file, process.env)
  if (!prepared.ok) throw new Error(JSON.stringify(prepared.faults))
  const wishes = { timeout: 3000, token: null, url: null, run: null, quiet: 0, ...differing.wishes }
  const machine = { ...QUIET, ...differing.machine }
  const digest = differing.digest ?? (await digestAt(prepared.value.config.health)) ?? prepared.value.digest
  const all = await examine({ ...prepared.value, digest }, wishes, machine, undefined, differing.clock)
  const each = (check: string): readonly Finding[] => all.filter((one) => one.check === check)
  return {
    all,
    each,
    of(check) {
      const [one, ...more] = each(check)
      if (one === undefined || more.length > 0) throw new Error(`${check} has ${more.length + (one ? 1 : 0)} findings`)
      return one
    },
  }
}

/** The configuration that a running gateway says it has. */
async function digestAt({ host, port }: { readonly host: string; readonly port: number }): Promise<string | undefined> {
  const origin = `http://${host === '0.0.0.0' ? '127.0.0.1' : host}:${port}`
  const answer = await fetch(`${origin}/readyz`, { signal: AbortSignal.timeout(1000) }).catch(() => null)
  return answer?.headers.get(CONFIGURATION_HEADER) ?? undefined
}

/** A configuration by which one thing answers for both listeners. They have two names for it, as no two share a port. */
export function bothAt(port: number): Changes {
  return { 'listen.host': '127.0.0.1', 'listen.port': port, 'health.host': 'localhost', 'health.port': port }
}

/** The runtimes tell the console of everything that is wrong with a request. */
export function hush(t: Test): void {
  for (const method of ['error', 'warn', 'log', 'debug', 'info'] as const) t.capture(console, method)
}

/** What is done to the gateway during a soak, one thing after the other. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startHelper, type Helper } from '../bench/processes.ts'
import type { Served } from '../bench/serving.ts'
import { configurationOf, writeBrokenPolicy, writePolicy, type SoakSetting } from './configuration.ts'
import { figuresOf, type Figures } from './figures.ts'
import type { SoakIssuer } from './issuer.ts'
import type { Window } from './judging.ts'
import type { Questions } from './questions.ts'
import type { MadeFault } from './result.ts'

/** What they are made with. */
export interface FaultParts {
  readonly gateway: Served
  readonly setting: SoakSetting
  readonly issuer: SoakIssuer
  readonly questions: Questions
  /** Takes the windows of the faults. */
  readonly windows: Window[]
  /** The upstream at first. */
  readonly upstream: Helper
  /** When the load began, in milliseconds since 1970. */
  readonly began: number
}

/** Makes them. */
export interface Faults {
  readonly made: readonly MadeFault[]
  readonly failed: readonly string[]
  /** Kills the upstream, and starts it again on its port. */
  killUpstream(): Promise<void>
  /** Changes the configuration, or the policy: the next of several ways in turn. */
  reload(): Promise<void>
  rotateKeys(): Promise<void>
  /** Ends the upstream. */
  stop(): Promise<void>
}

/** The upstream program. */
export const UPSTREAM = join(import.meta.dirname, 'upstream.ts')

/** How long the upstream stays away, in milliseconds. */
const AWAY = 2000

/** What a fault may show for after it is over, in milliseconds: an answer that was begun before that is read. */
const ECHO = 1000

/** How long something may take until it is to be seen, in milliseconds, and how often it is looked. */
const PATIENCE = 30_000
const LOOK_EVERY = 100

/** Makes what makes them. */
export function makeFaults(parts: FaultParts): Faults {
  const { gateway, setting, issuer, questions, windows, began } = parts
  const made: MadeFault[] = []
  const failed: string[] = []
  let { upstream } = parts
  let changes = 0
  let body = '1MiB'

  const figures = (): Promise<Figures> => figuresOf(gateway.pid, gateway.health)
  const timed = async (fault: MadeFault['fault'], what: string, make: () => Promise<void>): Promise<void> => {
    const from = Date.now()
    await make()
    made.push({ fault, what, at: (from - began) / 1000, seconds: (Date.now() - from) / 1000 })
  }
  const windowOf = async (fault: Window['fault'], make: () => Promise<void>): Promise<void> => {
    const window: Window = { fault, from: Date.now(), to: Number.POSITIVE_INFINITY }
    windows.push(window)
    await make()
    window.to = Date.now() + ECHO
  }
  const until = async (what: string, isSo: () => Promise<boolean>): Promise<void> => {
    const by = Date.now() + PATIENCE
    while (!(await isSo())) {
      if (Date.now() > by) return void failed.push(`not within ${PATIENCE / 1000} s: ${what}`)
      await sleep(LOOK_EVERY)
    }
  }
  const hangUp = (): void => void process.kill(gateway.pid, 'SIGHUP')
  const untilReloaded = async (what: string, change: () => void): Promise<void> => {
    const { reloaded } = await figures()
    change()
    await until(what, async () => (await figures()).reloaded > reloaded)
  }
  const changePolicy = (what: string, stopIsRefused: boolean, isSignalled: boolean) =>
    timed('reload', what, () =>
      windowOf('reload', async () => {
        await untilReloaded(what, () => {
          writePolicy(setting.folder, stopIsRefused)
          if (isSignalled) hangUp()
        })
        questions.stopIsRefused = stopIsRefused
      }),
    )

  const ways: readonly (() => Promise<void>)[] = [
    () => changePolicy('another policy, with SIGHUP', true, true),
    () =>
      timed('reload', 'another configuration, with SIGHUP', () =>
        untilReloaded('another configuration', () => {
          body = body === '1MiB' ? '2MiB' : '1MiB'
          writeFileSync(gateway.config, JSON.stringify(configurationOf(setting, body)))
          hangUp()
        }),
      ),
    () =>
      timed('reload', 'an unreadable policy, with SIGHUP: the active one stays', async () => {
        const { refused } = await figures()
        writeBrokenPolicy(setting.folder)
        hangUp()
        await until('a broken policy is refused', async () => (await figures()).refused > refused)
        writePolicy(setting.folder, questions.stopIsRefused)
        hangUp()
        await until('the policy is as it was', async () => (await figures()).isReloadFine)
      }),
    () => changePolicy('the first policy again, found by watching the file', false, false),
  ]

  return {
    made,
    failed,
    killUpstream: () =>
      timed('upstream', 'SIGKILL, and a restart on the same port', () =>
        windowOf('upstream', async () => {
          const { port } = upstream
          process.kill(upstream.pid, 'SIGKILL')
          await upstream.stop()
          await sleep(AWAY)
          upstream = await startHelper(UPSTREAM, String(port))
          await until('the gateway is ready again', async () => (await fetch(`${gateway.health}/readyz`)).ok)
        }),
      ),
    async reload() {
      const way = ways[changes % ways.length]!
      await way()
      changes += 1
    },
    rotateKeys: () => timed('keys', 'tokens signed with a new, published key', () => issuer.rotate()),
    stop: () => upstream.stop(),
  }
}

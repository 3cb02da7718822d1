/**
 * Decides in which order everything happens that could happen in another one. Whatever a gateway waits for parks here and goes
 * on when the schedule says so, so that a history is a list of choices, and all histories can be taken one after the other.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

/** Something that may happen next. */
export interface Choice {
  /** Who waits for it, and for what. */
  readonly name: string
  readonly go: () => void | Promise<void>
}

interface Parked extends Choice {
  /** To whom it belongs: dropped with a crash. */
  readonly gateway: string
}

/** Who works, while it works. */
export interface Actor {
  readonly name: string
  readonly gateway: string
  /** What it has been told so far: what it does next follows from that alone. */
  readonly heard: string[]
}

const actors = new AsyncLocalStorage<Actor>()

/** Those of the machine. */
export const realTimers = { setTimeout, setInterval, clearTimeout, clearInterval, setImmediate }

interface FakeTimer {
  readonly run: () => void
  readonly every: number | null
  readonly gateway: string
  at: number
}

/** One history. */
export class Scheduler {
  /** Milliseconds since the epoch. */
  now = 1_700_000_000_000
  /** Waits until nothing happens any more that nobody has to wait for. */
  quiet: () => Promise<void> = () => Promise.resolve()
  #parked: Parked[] = []
  #timers = new Map<object, FakeTimer>()
  #crashed = new Set<string>()
  #actors: Actor[] = []

  /** Begins work in an actor's name. */
  start(name: string, gateway: string, work: () => Promise<void>): void {
    const actor = { name, gateway, heard: [] }
    this.#actors.push(actor)
    void actors.run(actor, work).catch((error: unknown) => {
      // Whatever fails because the gateway is gone is heard by nobody.
      if (!this.#crashed.has(gateway)) throw error
    })
  }

  actor(): Actor {
    return actors.getStore() ?? { name: 'nobody', gateway: '', heard: [] }
  }

  /** Waits until the schedule lets it happen, and does it then. */
  park<T>(label: string, work: () => T | Promise<T>, tell: (result: T) => string = String): Promise<T> {
    const actor = this.actor()
    return new Promise<T>((resolve, reject) => {
      if (this.#crashed.has(actor.gateway)) return
      this.#parked.push({
        name: `${actor.name} ${label}`,
        gateway: actor.gateway,
        go: () => {
          const done = (result: T): void => {
            actor.heard.push(`${label}=${tell(result)}`)
            resolve(result)
          }
          const failed = (error: unknown): void => {
            actor.heard.push(`${label}!`)
            reject(error instanceof Error ? error : new Error(String(error)))
          }
          // Not waited for: another one may have to happen first, who has a lock.
          void actors.run(actor, async () => work()).then(done, failed)
        },
      })
    })
  }

  /** What everybody has been told so far. */
  heard(): readonly (readonly string[])[] {
    return this.#actors.map(({ name, heard }) => [name, ...heard])
  }

  /** What may happen now, each once by its name, in the order in which it began to wait. */
  choices(): readonly Choice[] {
    return this.#parked
  }

  /** Lets one of them happen, and all that follows from it without waiting. */
  async take(choice: Choice): Promise<void> {
    this.#parked = this.#parked.filter((one) => one !== choice)
    await choice.go()
    await this.settle()
  }

  /** True for what a gateway does that is gone. */
  isGone(): boolean {
    return this.#crashed.has(this.actor().gateway)
  }

  /** Nothing of a gateway happens any more. */
  crash(gateway: string): void {
    this.#crashed.add(gateway)
    this.#parked = this.#parked.filter((one) => one.gateway !== gateway)
    for (const [name, timer] of this.#timers) if (timer.gateway === gateway) this.#timers.delete(name)
  }

  /** Waits until everything waits for a choice. */
  async settle(): Promise<void> {
    // Look-ups that come together are asked together at the end of a round of the event loop, which is two rounds.
    for (let round = 0; round < 5; round += 1) await new Promise((resolve) => realTimers.setImmediate(resolve))
    await this.quiet()
  }

  /** Time passes, and timers go off in their order. */
  async pass(milliseconds: number): Promise<void> {
    const until = this.now + milliseconds
    for (;;) {
      const [next] = [...this.#timers].filter(([, { at }]) => at <= until).sort(([, a], [, b]) => a.at - b.at)
      if (next === undefined) break
      const [name, timer] = next
      this.now = Math.max(this.now, timer.at)
      if (timer.every === null) this.#timers.delete(name)
      else timer.at += Math.max(timer.every, 1)
      timer.run()
      await this.settle()
    }
    this.now = until
  }

  /** Makes the timers of the program those of this history, until the function returned is called. */
  install(): () => void {
    const add = (run: () => void, delay: number, every: number | null): object => {
      const timer = { unref: () => timer, ref: () => timer, refresh: () => timer, [Symbol.dispose]: () => {} }
      const actor = this.actor()
      this.#timers.set(timer, { run: () => actors.run(actor, run), every, at: this.now + delay, gateway: actor.gateway })
      return timer
    }
    const drop = (timer: unknown): void => void this.#timers.delete(timer as object)
    Object.assign(globalThis, {
      setTimeout: (run: () => void, delay = 0) => add(run, delay, null),
      setInterval: (run: () => void, delay = 0) => add(run, delay, delay),
      clearTimeout: drop,
      clearInterval: drop,
    })
    return () => Object.assign(globalThis, realTimers)
  }
}

/** What answers take that are read whole, as lists are: as much is held for each as it needs at the time. */
import { readingCost } from '../pipeline/body-memory.ts'
import type { BodyBudget } from '../pipeline/request-body.ts'

/** An answer that is no larger takes nothing worth counting. */
const SMALL = 64 * 1024

/** The memory that one answer takes. */
export class AnswerMemory {
  readonly #budget: BodyBudget
  #held = 0
  #kept = 0
  #lacked = false

  constructor(budget: BodyBudget) {
    this.#budget = budget
  }

  /** True after there was no room for it. */
  get lacked(): boolean {
    return this.#lacked
  }

  /** Holds what it takes to read so many bytes, beside what is kept. @returns false where that isn't there */
  reads(bytes: number): boolean {
    return this.#hold(this.#kept + (bytes <= SMALL ? 0 : readingCost(bytes, 0)))
  }

  /** Holds so many bytes, for what is read elsewhere and is going to be written. @returns false where they aren't there */
  holds(bytes: number): boolean {
    return this.#hold(bytes <= SMALL ? 0 : bytes)
  }

  /** Some of what was read so last, of so many bytes, is kept. */
  keeps(bytes: number): void {
    this.#kept += bytes
  }

  /** Holds what was written of it, and nothing else any more. */
  wrote(bytes: number): void {
    this.#kept = 0
    this.#hold(bytes <= SMALL ? 0 : Math.min(bytes, this.#held))
  }

  /** Holds nothing any more. */
  release(): void {
    this.wrote(0)
  }

  #hold(bytes: number): boolean {
    const more = bytes - this.#held
    if (more > 0 && !this.#budget.take(more)) {
      this.#lacked = true
      return false
    }
    if (more < 0) this.#budget.give(-more)
    this.#held = bytes
    return true
  }
}

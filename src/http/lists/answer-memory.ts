/** Accounts for the memory of answers that are read as a whole, such as lists: each reserves what it needs at the time. */
import { readingCost, type BodyBudget } from '../pipeline/request-body.ts'

/** Smaller answers are not counted. */
const SMALL = 64 * 1024

export class AnswerMemory {
  readonly #budget: BodyBudget
  #held = 0
  #kept = 0
  #lacked = false

  constructor(budget: BodyBudget) {
    this.#budget = budget
  }

  get lacked(): boolean {
    return this.#lacked
  }

  /** @returns false if there is not enough */
  reads(bytes: number): boolean {
    return this.#hold(this.#kept + (bytes <= SMALL ? 0 : readingCost(bytes, 0)))
  }

  /** Reserves memory for bytes that were read elsewhere. @returns false if there is not enough */
  holds(bytes: number): boolean {
    return this.#hold(bytes <= SMALL ? 0 : bytes)
  }

  keeps(bytes: number): void {
    this.#kept += bytes
  }

  wrote(bytes: number): void {
    this.#kept = 0
    this.#hold(bytes <= SMALL ? 0 : Math.min(bytes, this.#held))
  }

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

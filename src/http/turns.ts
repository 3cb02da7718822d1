/**
 * Gives others their turn between the steps of long work. In one turn of the event loop one step is taken, whichever of the
 * requests it is of: sixteen large bodies at once hold up other requests no longer than one does.
 */
import type { Steps } from '../core/steps.ts'

const waiting: (() => void)[] = []

/** Waits for the next turn that nobody else waits for before. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve)
    if (waiting.length === 1) setImmediate(begin)
  })
}

function begin(): void {
  waiting.shift()?.()
  if (waiting.length > 0) setImmediate(begin)
}

/** Takes steps, and lets others have their turn between them. @returns what comes of the last one */
export async function inTurns<Result>(steps: Steps<Result>): Promise<Result> {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
    await turn()
  }
}

/** Results of checks as lines of TAP, like those of containers.sh. */
import { print } from '../../examples/demo-exchanges.ts'

export interface Checks {
  readonly check: (what: string, isTrue: boolean, detail?: unknown) => void
  /** Prints the sum, and sets the exit code of the process. */
  readonly conclude: () => void
}

export function makeChecks(): Checks {
  let failed = 0
  let count = 0
  return {
    check: (what, isTrue, detail = '') => {
      count += 1
      if (!isTrue) failed += 1
      const reason = `#   ${typeof detail === 'string' ? detail : JSON.stringify(detail)}\n`
      print(`${isTrue ? 'ok' : 'not ok'} ${count} - ${what}\n${isTrue ? '' : reason}`)
    },
    conclude: () => {
      print(`1..${count}\n# ${failed === 0 ? `all ${count} checks passed` : `${failed} of ${count} checks failed`}\n`)
      process.exitCode = failed === 0 ? 0 : 1
    },
  }
}

/** What the doctor says: one finding for each thing it looked at, also where it could not look. */

/** How bad it is. `unknown` is what could not be checked or told: it is never taken for fine. */
export type Level = 'ok' | 'warning' | 'problem' | 'unknown'

export interface Finding {
  /** What was looked at, as `part.check`; a name that scripts may rely on. */
  readonly check: string
  readonly level: Level
  readonly message: string
  readonly remedy?: string
}

function finding(level: Level, check: string, message: string, remedy?: string): Finding {
  return { check, level, message, ...(remedy === undefined ? {} : { remedy }) }
}

/** It is as it should be. */
export const ok = (check: string, message: string): Finding => finding('ok', check, message)

/** It works, and somebody should know of it all the same. */
export const warning = (check: string, message: string, remedy: string): Finding => finding('warning', check, message, remedy)

/** Something does not work, or is open that must not be. */
export const problem = (check: string, message: string, remedy: string): Finding => finding('problem', check, message, remedy)

export const unknown = (check: string, message: string, remedy?: string): Finding => finding('unknown', check, message, remedy)

/** It was not looked at, and why. */
export const notChecked = (check: string, why: string, remedy?: string): Finding => unknown(check, `not checked: ${why}`, remedy)

/** True if a script should hear of it by the exit code. */
export function isFault({ level }: Finding): boolean {
  return level === 'problem' || level === 'warning'
}

/** A duration as it stands in a sentence. */
export function seconds(milliseconds: number): string {
  return milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${Math.round(milliseconds / 100) / 10} s`
}

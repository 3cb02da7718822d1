/** The doctor's findings: one for each check, including a check that could not run. */

/** How serious a finding is. `unknown` means that the doctor could not check or decide: it never counts as fine. */
export type Level = 'ok' | 'warning' | 'problem' | 'unknown'

export interface Finding {
  /** What was checked, as `part.check`. Scripts rely on this name. */
  readonly check: string
  readonly level: Level
  readonly message: string
  readonly remedy?: string
}

function finding(level: Level, check: string, message: string, remedy?: string): Finding {
  return { check, level, message, ...(remedy === undefined ? {} : { remedy }) }
}

export const ok = (check: string, message: string): Finding => finding('ok', check, message)

export const warning = (check: string, message: string, remedy: string): Finding => finding('warning', check, message, remedy)

export const problem = (check: string, message: string, remedy: string): Finding => finding('problem', check, message, remedy)

export const unknown = (check: string, message: string, remedy?: string): Finding => finding('unknown', check, message, remedy)

export const notChecked = (check: string, why: string, remedy?: string): Finding => unknown(check, `not checked: ${why}`, remedy)

export function isFault({ level }: Finding): boolean {
  return level === 'problem' || level === 'warning'
}

export function seconds(milliseconds: number): string {
  return milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${Math.round(milliseconds / 100) / 10} s`
}

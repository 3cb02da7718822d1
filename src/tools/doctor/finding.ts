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

/** What a check results; by default it is about the check itself. */
export type Result = Omit<Finding, 'check'> & Partial<Pick<Finding, 'check'>>

export const ok = (message: string): Result => ({ level: 'ok', message })

export const warning = (message: string, remedy: string): Result => ({ level: 'warning', message, remedy })

export const problem = (message: string, remedy: string): Result => ({ level: 'problem', message, remedy })

export const unknown = (message: string, remedy?: string): Result => ({
  level: 'unknown',
  message,
  ...(remedy === undefined ? {} : { remedy }),
})

export const notChecked = (why: string, remedy?: string): Result => unknown(`not checked: ${why}`, remedy)

export function isFault({ level }: Finding): boolean {
  return level === 'problem' || level === 'warning'
}

export function seconds(milliseconds: number): string {
  return milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${Math.round(milliseconds / 100) / 10} s`
}

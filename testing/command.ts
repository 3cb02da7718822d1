/** The frame of a script: its exit code, and what it says to a command line that it can't read. */

/** A command line that can't be read; the message says what is wrong with it. */
export class UsageError extends Error {}

/**
 * Runs a script, and sets the exit code of the process: that which `main` gives, or 2 for wrong usage.
 * @param usage is written behind what is wrong
 * @throws everything else that `main` rejects with
 */
export async function runCommand(main: () => Promise<number>, usage: string): Promise<void> {
  try {
    process.exitCode = await main()
  } catch (error) {
    const isUsage = error instanceof UsageError || (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS') === true
    if (!isUsage) throw error
    process.stderr.write(`${(error as Error).message}\n\n${usage}`)
    process.exitCode = 2
  }
}

/**
 * The program in a process that stays: it runs one command after the other, as they are sent to it, and sends back what each
 * of them printed. To start a process for each takes longer than all that they do.
 */
import { run } from '../../src/cli/run.ts'
import type { Ended } from './program.ts'

/** Collects what is written to a stream, instead of writing it. */
function collect(stream: NodeJS.WriteStream): { readonly text: () => string } {
  let text = ''
  stream.write = (chunk: string | Uint8Array): boolean => {
    text += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8')
    return true
  }
  return {
    text() {
      const all = text
      text = ''
      return all
    },
  }
}

const stdout = collect(process.stdout)
const stderr = collect(process.stderr)

process.on('message', (args: readonly string[]) => {
  run(args).then(
    (code) => process.send?.({ code, stdout: stdout.text(), stderr: stderr.text() } satisfies Ended),
    (error: unknown) =>
      process.send?.({ code: null, stdout: stdout.text(), stderr: error instanceof Error ? String(error.stack) : String(error) }),
  )
})
process.on('disconnect', () => process.exit())

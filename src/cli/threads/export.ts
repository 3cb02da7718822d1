/** `threadwarden threads export`: writes the ownership table in the form that an import reads. */
import { createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { Readable, type Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { exportLines, hasScopes, rowsOf } from '../../tools/import-export/export.ts'
import { formatOf, type Format } from '../../tools/import-export/source-file.ts'
import { terminalJson } from '../../core/json/terminal-json.ts'
import type { RowFilter, ThreadRow } from '../../store/port/administration.ts'
import { CommandFailed, CONFIG, defineCommand, EXIT, flag, QUIET, SCOPE_FILTER, value } from '../command.ts'
import { counted } from '../format-thread.ts'
import { complain, harmless, type Terminal } from '../terminal.ts'
import { withProgress } from '../with-progress.ts'
import { onStore } from '../with-store.ts'
import { formatNamed } from './import-source.ts'

export const command = defineCommand({
  about: `Exports threads with their owners, in the form that threads import reads: thread, user, agent, name, archived, created, used, and
scope if a thread does not belong to upstream. The user of a thread with a revoked owner is "nobody". Grants are not exported. In CSV,
a value that a spreadsheet would run as a formula starts with an apostrophe, which threads import removes.

A row that changes during the export is written in its old or its new state.`,
  options: {
    config: CONFIG,
    format: value('F', "csv (with a header) or jsonl (a JSON object a line); by default the output file's extension, or csv"),
    output: value('FILE', 'writes to a new file instead of stdout'),
    scope: SCOPE_FILTER,
    all: flag('also deleted threads, with the time (deleted): with unknownThread: claim, a new store needs them'),
    quiet: QUIET,
  },
  exitCodes: { 0: 'done', 1: 'interrupted, a file that cannot be written, an invalid configuration or a failing store' },
  examples: ['threadwarden threads export --output owners.csv', 'threadwarden threads export --format jsonl --all'],

  async run({ output, all, ...values }, terminal) {
    const format = formatNamed(values.format) ?? (output === undefined ? null : formatOf(output)) ?? 'csv'
    return onStore(terminal, values, ({ store, scope: named }) => {
      const isShown = output === undefined && terminal.stdout.isTTY === true
      return withProgress(terminal, { quiet: values.quiet || isShown }, async ({ retry, signal, progress }) => {
        const { threads, deleted } = await store.stats(named)
        progress.begin('written', all ? threads + deleted : threads)
        const deletedToo: RowFilter = { deleted: all ? 'too' : 'no' }
        const scoped = named === undefined ? await hasScopes(store, deletedToo, retry) : named !== ''
        // A file without the column has one scope: a row of another scope, added during the export, would name another thread.
        const filter = named === undefined && scoped ? deletedToo : { ...deletedToo, scope: named ?? '' }
        let count = 0
        async function* counting(): AsyncGenerator<ThreadRow> {
          for await (const row of rowsOf(store, filter, retry)) {
            yield row
            count += 1
            progress.at(count)
          }
        }
        const lines = exportLines(counting(), format, { deleted: all, scope: scoped })
        await write(isShown ? forTerminal(lines, format) : lines, terminal, output, signal)
        progress.end()
        if (output !== undefined) complain(terminal, `${counted(count, 'thread')} written to ${output}`)
        return EXIT.fine
      })
    })
  },
})

/** Makes lines harmless for a terminal: users choose names freely. A file or a pipe gets them unchanged. */
async function* forTerminal(lines: AsyncIterable<string>, format: Format): AsyncGenerator<string> {
  for await (const line of lines) yield format === 'jsonl' ? terminalJson(line) : `${harmless(line.slice(0, -1))}\n`
}

/** Writes the lines. @throws CommandFailed after it removed a file that was not written to its end */
async function write(
  lines: AsyncIterable<string>,
  terminal: Terminal,
  output: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  // The export names users and their threads: only the file's owner may read it.
  const to: Writable = output === undefined ? terminal.stdout : createWriteStream(output, { flags: 'wx', mode: 0o600 })
  try {
    await pipeline(Readable.from(lines), to, { signal, end: output !== undefined })
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    if (code === 'EEXIST') throw new CommandFailed(`error: ${output ?? ''} already exists: name another file, or remove it`)
    if (output !== undefined) await rm(output, { force: true })
    if (signal.aborted) throw new CommandFailed('error: interrupted, the output is not complete')
    // The reader closed the pipe because it needs no more.
    if (code === 'EPIPE') throw new CommandFailed('error: stdout was closed before the end')
    if (error instanceof Error && 'syscall' in error)
      throw new CommandFailed(
        `error: ${output ?? 'stdout'} ${code === 'ENOENT' ? 'cannot be written: its folder does not exist' : `cannot be written (${code})`}`,
      )
    throw error
  }
}

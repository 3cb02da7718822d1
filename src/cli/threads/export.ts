/** `threadwarden threads export`: writes the ownership table in the form that an import reads. */
import { createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { Readable, type Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { exportLines, hasScopes, rowsOf } from '../../tools/import-export/export.ts'
import { formatOf, type Format } from '../../tools/import-export/source-file.ts'
import { terminalJson } from '../../core/json/terminal-json.ts'
import type { RowFilter, ThreadRow } from '../../store/port.ts'
import { complain, EXIT, readOptions, type Command } from '../command.ts'
import { counted } from '../argument-values.ts'
import { onStore, STORE_OPTIONS } from '../with-store.ts'
import { SCOPE_OPTION, scopeNamed } from '../scope-option.ts'
import { withProgress } from '../with-progress.ts'
import { harmless } from '../terminal.ts'
import { formatNamed } from './import-options.ts'

const OPTIONS = {
  config: STORE_OPTIONS.config,
  ...SCOPE_OPTION,
  format: { type: 'string' },
  output: { type: 'string' },
  all: { type: 'boolean' },
  quiet: { type: 'boolean' },
} as const

export const exportThreads: Command = {
  summary: 'writes threads with their owners to a file',
  help: `threadwarden threads export --config FILE [--format csv|jsonl] [--output FILE] [--scope KEY] [--all] [--quiet]

Writes threads with their owners, in the order of their scopes and ids, as threads import takes them: thread, user, agent,
name, archived, created, used, and, if some are of another upstream than upstream, the key of that (scope). The user of a
thread whose owner was taken away is nobody. Grants are not in it. In CSV, what a spreadsheet would take for a formula has an
apostrophe before it, which threads import takes away again.

  --config FILE  the configuration (YAML or JSON)
  --format F     csv (with a header) or jsonl (a JSON object in each line); by default what the name of the output ends
                 with, or csv
  --output FILE  where to; by default stdout. A file that is there is not written over
  --scope KEY    only those of the upstream with this key under upstreams or agents, '' for upstream; by default all
  --all          deleted threads, too, with the time of it (deleted): with unknownThread: claim they have to come along
                 to another store, where whoever comes first would own them
  --quiet        says nothing of the progress

Rows that change while it runs may be in it as they were or as they are.

Exit codes: 0 done, 1 interrupted, an invalid configuration, a failing store or a file that cannot be written, 2 wrong usage.`,

  async run(args) {
    const options = readOptions(args, OPTIONS)
    const { output } = options
    const format = formatNamed(options.format) ?? (output === undefined ? null : formatOf(output)) ?? 'csv'
    const all = options.all === true
    return onStore(options, async (opened) => {
      const { store } = opened
      const named = await scopeNamed(options.scope, opened)
      const quiet = options.quiet === true || (output === undefined && process.stdout.isTTY)
      return withProgress(quiet, async ({ retry, signal, progress }) => {
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
        const isShown = output === undefined && process.stdout.isTTY
        const written = await write(isShown ? forTerminal(lines, format) : lines, output, signal)
        progress.end()
        if (written === 'done' && output !== undefined) complain(`${counted(count, 'thread')} written to ${output}`)
        if (written !== 'done') complain(`error: ${written}`)
        return written === 'done' ? EXIT.fine : EXIT.failure
      })
    })
  },
}

/** Makes lines harmless for a terminal: users choose names freely. A file or a pipe gets them unchanged. */
async function* forTerminal(lines: AsyncIterable<string>, format: Format): AsyncGenerator<string> {
  for await (const line of lines) yield format === 'jsonl' ? terminalJson(line) : `${harmless(line.slice(0, -1))}\n`
}

/** Writes the lines, and removes a file that was not written to its end. */
async function write(lines: AsyncIterable<string>, output: string | undefined, signal: AbortSignal): Promise<string> {
  // The export names users and their threads: only the file's owner may read it.
  const to: Writable = output === undefined ? process.stdout : createWriteStream(output, { flags: 'wx', mode: 0o600 })
  try {
    await pipeline(Readable.from(lines), to, { signal, end: output !== undefined })
    return 'done'
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    if (code === 'EEXIST') return `${output ?? ''} is there already: name another file, or remove it`
    if (output !== undefined) await rm(output, { force: true })
    if (signal.aborted) return 'interrupted; what was written is not all of it'
    // The reader closed the pipe because it needs no more.
    if (code === 'EPIPE') return 'stdout was closed before the end'
    if (error instanceof Error && 'syscall' in error) return `${output ?? 'stdout'} cannot be written (${code})`
    throw error
  }
}

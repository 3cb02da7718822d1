/** `threadwarden store backup`: copies the store while gateways write to it. */
import { storeOf } from '../../config/store-place.ts'
import { backup as copyStore, BackupFailed, type Backup } from '../../store/sqlite/backup.ts'
import { CommandFailed, CONFIG, defineCommand, EXIT, flag, jsonFlag, QUIET, UsageError } from '../command.ts'
import { sizeText } from '../../document/quantities.ts'
import { print, printData } from '../terminal.ts'
import { loadConfig } from '../input-files.ts'
import { sayDefaultStore } from '../with-store.ts'
import { withProgress } from '../with-progress.ts'

export const command = defineCommand({
  about: `Copies the SQLite store as of one moment, while gateways write to it. It checks the copy, and gives it its name only when it is
complete and on disk. To restore it, stop the gateways, replace the store with the copy, and delete the -wal and -shm files beside
it. Back up a PostgreSQL store with the tools of PostgreSQL, for example pg_dump.

The copy contains user ids, thread ids, names and the secret of list cursors. Protect it like the store.`,
  positionals: { TO: 'the file for the copy, in a folder that exists' },
  options: {
    config: CONFIG,
    force: flag('replaces an existing file'),
    quiet: QUIET,
    json: jsonFlag('{"file", "bytes", "schema"}'),
  },
  exitCodes: { 0: 'done', 1: 'failed, interrupted or an invalid configuration', 2: 'wrong usage or a PostgreSQL store' },
  examples: ['threadwarden store backup /backup/ownership.db'],

  async run(values, terminal, [target, ...more]) {
    if (target === undefined || more.length > 0) throw new UsageError('name one file for the copy')
    const prepared = loadConfig(terminal, values)
    sayDefaultStore(terminal, prepared)
    const named = storeOf(prepared.config.ownership)
    if (named.kind === 'postgres') {
      const { schema } = named.settings
      throw new UsageError(`the store is on PostgreSQL: use pg_dump --schema=${schema}, or the backup of the server`)
    }
    return withProgress(terminal, values, async ({ signal, progress }) => {
      let copied: Backup
      try {
        progress.begin('pages copied', null)
        let total = 0
        copied = await copyStore(named.file, target, {
          overwrite: values.force,
          signal,
          onProgress(done, of) {
            if (of !== total) progress.begin('pages copied', of)
            total = of
            progress.at(done)
          },
        })
      } catch (error) {
        if (!(error instanceof BackupFailed) && !signal.aborted) throw error
        throw new CommandFailed(
          error instanceof BackupFailed ? `error: ${error.message}${hintFor(error)}` : 'interrupted: nothing was copied',
        )
      } finally {
        progress.end()
      }
      if (values.json) printData(terminal, { file: target, ...copied }, 0)
      else print(terminal, `${named.file} was copied to ${target}: ${sizeText(copied.bytes)}, schema ${copied.schema}`)
      return EXIT.fine
    })
  },
})

function hintFor({ message }: BackupFailed): string {
  return message.endsWith('already exists: name another file') ? ', or replace it with --force' : ''
}

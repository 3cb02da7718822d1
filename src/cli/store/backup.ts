/** `threadwarden store backup`: copies the store while gateways write to it. */
import { storeOf } from '../../config/store-place.ts'
import { backup as copyStore, BackupFailed, type Backup } from '../../store/sqlite/backup.ts'
import { complain, EXIT, print, printData, readArguments, UsageError, type Command } from '../command.ts'
import { loaded } from '../input-files.ts'
import { STORE_OPTIONS } from '../with-store.ts'
import { withProgress } from '../with-progress.ts'

const OPTIONS = { ...STORE_OPTIONS, force: { type: 'boolean' }, quiet: { type: 'boolean' } } as const

export const backup: Command = {
  summary: 'copies a SQLite store while gateways write to it',
  help: `threadwarden store backup --config FILE TO [--force] [--quiet] [--json]

Copies the SQLite store, all of it as it is at one moment, while gateways write to it. The copy is looked through, and stands
at its name only when it is whole and on the disk. Restore it with the gateways stopped: put it in the place of the store, and
take away the -wal and -shm beside that. A PostgreSQL store is backed up with the means of PostgreSQL: pg_dump, or those of
whoever runs it.

  --config FILE  the configuration (YAML or JSON)
  TO             the file of the copy; its folder must be there
  --force        puts it in place of a file that is there
  --quiet        says nothing of the progress
  --json         prints {"file", "bytes", "schema"} on stdout

The copy holds user ids, thread ids, names and the secret of list cursors: keep it as you keep the store.

Exit codes: 0 done, 1 it could not be made, interrupted or an invalid configuration, 2 wrong usage or a PostgreSQL store.`,

  async run(args) {
    const { values, positionals } = readArguments(args, OPTIONS)
    const [target, ...more] = positionals
    if (target === undefined || more.length > 0) throw new UsageError('name one file to copy to')
    const prepared = loaded(values.config, values.json === true)
    if (prepared === null) return EXIT.failure
    const named = storeOf(prepared.config.ownership)
    if (named.kind === 'postgres') {
      const { schema } = named.settings
      throw new UsageError(
        `the store is on PostgreSQL: back it up with pg_dump --schema=${schema}, or as the server is backed up`,
      )
    }
    return withProgress(values.quiet === true, async ({ signal, progress }) => {
      let copied: Backup
      try {
        progress.begin('pages copied', null)
        let total = 0
        copied = await copyStore(named.file, target, {
          overwrite: values.force === true,
          signal,
          onProgress(done, of) {
            if (of !== total) progress.begin('pages copied', of)
            total = of
            progress.at(done)
          },
        })
      } catch (error) {
        if (!(error instanceof BackupFailed) && !signal.aborted) throw error
        complain(error instanceof BackupFailed ? `error: ${error.message}${hintFor(error)}` : 'interrupted: nothing was copied')
        return EXIT.failure
      } finally {
        progress.end()
      }
      if (values.json === true) printData({ file: target, ...copied }, 0)
      else print(`${named.file} was copied to ${target}: ${copied.bytes} bytes, schema ${copied.schema}`)
      return EXIT.fine
    })
  },
}

function hintFor({ message }: BackupFailed): string {
  return message.endsWith('is there already: name another file') ? ', or write over it with --force' : ''
}

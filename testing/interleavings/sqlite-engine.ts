/** Histories on SQLite: each has a file of its own, and each step that a gateway takes on it waits for the schedule. */
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { SqliteFile, type Step } from '../../src/store/sqlite/file.ts'
import { callNow, plain, type Engine, type Row } from './engine.ts'

/** In memory where the machine has such a folder. */
const FOLDER = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

/** How a step is taken on the file. */
type Kind = 'read' | 'ask' | 'write'
type Take = (this: SqliteFile, step: Step<unknown>) => Promise<unknown>

const ROWS = `SELECT user_id AS owner, deleted_at IS NOT NULL AS deleted, provisional, open_runs AS pending, upstream_deleted AS gone,
  deletion IS NOT NULL AS deleting FROM threads`

interface RawRow {
  readonly owner: string
  readonly deleted: number
  readonly provisional: number
  readonly pending: number
  readonly gone: number
  readonly deleting: number
}

/** Makes the engine. A step is a transaction, or one statement, on a driver that does nothing else meanwhile. */
export async function sqliteEngine(): Promise<Engine> {
  const template = mkdtempSync(join(FOLDER, 'threadwarden-test-'))
  await (await openSqliteStore(join(template, 'store.db'))).close()
  // Its methods are generic; the scheduler takes a step whatever its types.
  const steps = SqliteFile.prototype as unknown as Record<Kind, Take>
  const { read, ask, write } = steps
  const real: Readonly<Record<Kind, Take>> = { read, ask, write }
  return {
    async begin(scheduler, isParking) {
      const folder = mkdtempSync(join(FOLDER, 'threadwarden-test-'))
      const file = join(folder, 'store.db')
      copyFileSync(join(template, 'store.db'), file)
      const database = new Database(file)
      const waiting = (kind: Kind): Take =>
        function (step) {
          const call = callNow()
          const take = (): Promise<unknown> => real[kind].call(this, step)
          if (call === undefined || !isParking()) return take()
          // What a step that writes gives is what the call is answered, with numbers that are no matter.
          return scheduler.park(call, take, (result) => (kind === 'write' ? '' : plain(result)))
        }
      Object.assign(steps, { read: waiting('read'), ask: waiting('ask'), write: waiting('write') })
      return {
        open: () => openSqliteStore(file),
        rows: () => {
          const rows = database.prepare(ROWS).all() as RawRow[]
          return Promise.resolve(
            rows.map(({ deleted, provisional, gone, deleting, ...row }): Row => {
              return {
                ...row,
                deleted: deleted === 1,
                provisional: provisional === 1,
                gone: gone === 1,
                deleting: deleting === 1,
              }
            }),
          )
        },
        grantees: () => {
          const rows = database.prepare("SELECT grantee FROM grants WHERE kind = 'user'").all() as { grantee: string }[]
          return Promise.resolve(rows.map(({ grantee }) => grantee))
        },
        quiet: () => Promise.resolve(),
        crash: (_gateway, store) => store.close(),
        async close(stores) {
          Object.assign(steps, real)
          for (const store of stores) await store.close()
          database.close()
          rmSync(folder, { recursive: true, force: true })
        },
      }
    },
    remove: () => {
      rmSync(template, { recursive: true, force: true })
      return Promise.resolve()
    },
  }
}

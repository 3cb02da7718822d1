/** Checks a SQLite file for damage in a worker thread: it reads the whole file while requests continue. */
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import Database from 'better-sqlite3'
import { inWords } from './connection.ts'

/** `quick` does not compare indexes with tables. */
export type Closeness = 'quick' | 'whole'

interface Order {
  readonly damageIn: string
  readonly closeness: Closeness
}

export function findDamage(file: string, closeness: Closeness): Promise<string | null> {
  return new Promise((resolve) => {
    const order: Order = { damageIn: file, closeness }
    const worker = new Worker(new URL(import.meta.url), { workerData: order })
    worker.unref()
    worker.once('message', (damage: string | null) => resolve(damage))
    worker.once('error', (error) => resolve(inWords(error)))
    worker.once('exit', () => resolve('the look was broken off'))
  })
}

function damageIn({ damageIn: file, closeness }: Order): string | null {
  let database: Database.Database | undefined
  try {
    database = new Database(file, { fileMustExist: true })
    const rows = database.pragma(closeness === 'quick' ? 'quick_check(1)' : 'integrity_check(1)', { simple: true })
    return rows === 'ok' ? null : String(rows)
  } catch (error) {
    return inWords(error)
  } finally {
    database?.close()
  }
}

if (!isMainThread && typeof workerData === 'object' && workerData !== null && 'damageIn' in workerData)
  parentPort?.postMessage(damageIn(workerData as Order))

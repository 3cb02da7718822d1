/** A thread that is in the middle of making a database file, as another gateway would be that starts at the same moment. */
import { parentPort, workerData } from 'node:worker_threads'
import Database from 'better-sqlite3'

const { file, milliseconds } = workerData as { readonly file: string; readonly milliseconds: number }
const database = new Database(file)
database.exec('BEGIN IMMEDIATE')
parentPort?.postMessage('locked')
// The thread that opens the store is blocked while it waits: nothing but time can tell this one to go on.
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds)
database.exec('COMMIT')
database.close()

/** A process that has the write lock of a database file, as another gateway has it in the middle of a write, until it is told. */
import Database from 'better-sqlite3'

const [file = ''] = process.argv.slice(2)
const database = new Database(file)
database.exec('BEGIN IMMEDIATE')
process.on('message', () => {
  database.exec('COMMIT')
  database.close()
  process.send?.('released', () => process.disconnect())
})
process.send?.('locked')

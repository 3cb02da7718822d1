/** A process with a staging table that is larger than what SQLite holds in memory: it tells its file descriptors of it, and waits. */
import { readdirSync, readlinkSync } from 'node:fs'
import { makeStagingTable } from '../../src/tools/import-export/staging-table.ts'

const table = makeStagingTable()
const facts = { agentId: '', name: 'x'.repeat(1000), archived: false, createdAt: 0, lastUsedAt: 0, deletedAt: null }
for (let line = 1; line <= 100_000; line += 1) {
  table.add({ kind: 'row', line, scope: '', threadId: `t-${line}`, owner: 'corp:a', facts })
}
process.stdout.write(JSON.stringify(filesIn(process.env['SQLITE_TMPDIR'] ?? '')))
setInterval(() => {}, 60_000)
process.on('exit', () => table.close())

/** The descriptors of files that were made in a folder; none where the system does not tell. */
function filesIn(folder: string): readonly string[] {
  const fds = '/proc/self/fd'
  const target = (fd: string): string => {
    try {
      return readlinkSync(`${fds}/${fd}`)
    } catch {
      return ''
    }
  }
  try {
    return readdirSync(fds).filter((fd) => target(fd).startsWith(`${folder}/`))
  } catch {
    return []
  }
}

/** A process that writes audit lines to the file that it is given, and dies of an error before any of them can be written. */
import { openAuditFile } from '../../src/audit/file.ts'
import { makeLog } from '../../src/observe/log.ts'

const outage = { began: () => {}, over: () => {}, lost: () => {}, ended: () => {} }
const sink = openAuditFile(process.argv[2] ?? '', { outage, log: makeLog('silent'), onWritten: () => {} })
for (let at = 0; at < 2000; at += 1) sink.write(`{"at":${at}}\n`)
throw new Error('dying')

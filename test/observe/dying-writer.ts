/** A process that writes audit lines to the file that it is given, and dies of an error before any of them can be written. */
import { openAuditFile } from '../../src/audit/file.ts'

const outage = { began: () => {}, over: () => {}, lost: () => {}, ended: () => {} }
const sink = await openAuditFile({ file: process.argv[2] ?? '', maxSize: 1024 * 1024, keep: 1 }, outage, () => {})
for (let at = 0; at < 2000; at += 1) sink.write(`{"at":${at}}\n`)
throw new Error('dying')

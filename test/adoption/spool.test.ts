/** What is put aside: threads on which all lines agree, those on which they don't, and no trace of it left behind. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test, type Test } from 'tap'
import { fill } from '../../src/tools/import-export/fill.ts'
import { entriesOf } from '../../src/tools/import-export/source-file.ts'
import { makeStagingTable, type StagingTable } from '../../src/tools/import-export/staging-table.ts'
import { makeFolder } from '../support/gateway.ts'
import { inPieces, READING } from './sources.ts'
import { key } from './store.ts'

const HEADER = 'thread,user,created'

/** A spool with what lines of CSV say. */
async function spoolOf(
  t: Test,
  ...lines: readonly string[]
): Promise<{ readonly spool: StagingTable; readonly threads: number }> {
  const spool = makeStagingTable()
  t.teardown(() => spool.close())
  const entries = entriesOf(inPieces(lines.join('\n')), 'csv', READING)
  const { threads } = await fill(entries, spool, { signal: new AbortController().signal, onProblem: () => {} })
  return { spool, threads }
}

const rivals = (spool: StagingTable, threadId: string): readonly string[] =>
  [...spool.rivals(key(threadId))].map(({ line, owner }) => `${line}: ${owner}`)

void test('threads come in the order of their ids, byte for byte, in pages', async (t) => {
  const { spool, threads } = await spoolOf(t, HEADER, 'b,corp:x,', 'B,corp:x,', 'a,corp:x,', 'c,corp:x,')
  t.equal(threads, 4)
  const first = spool.page(null, 3)
  t.same(
    first.rows.map(({ threadId, line }) => `${threadId} ${line}`),
    ['B 3', 'a 4', 'b 2'],
  )
  const second = spool.page(first.next, 3)
  t.same(
    second.rows.map(({ threadId }) => threadId),
    ['c'],
  )
  t.equal(second.next, null)
})

void test('a thread of one upstream disputes nothing of another, and pages go on from one to the next', async (t) => {
  const lines = ['a,corp:y,legal', 'a,corp:x,', 'b,corp:x,legal', 'b,corp:z,legal', 'a,corp:y,legal', 'a,corp:x,research']
  const { spool, threads } = await spoolOf(t, 'thread,user,scope', ...lines)
  t.equal(threads, 4)
  const pages = [spool.page(null, 2)]
  for (let next = pages[0]?.next ?? null; next !== null; next = pages.at(-1)?.next ?? null) pages.push(spool.page(next, 2))
  t.same(
    pages.flatMap(({ rows }) => rows.map(({ scope, threadId, owner }) => `${scope}/${threadId}=${owner}`)),
    ['/a=corp:x', 'legal/a=corp:y', 'research/a=corp:x'],
  )
  const b = { scope: 'legal', threadId: 'b' }
  t.same(
    pages.flatMap(({ disputed }) => disputed),
    [b],
  )
  t.equal(spool.ownerOf(b), 'disputed')
  t.equal(spool.ownerOf(key('b')), null)
  t.same(
    [...spool.rivals(b)].map(({ owner }) => owner),
    ['corp:x', 'corp:z'],
  )
})

void test('what a line says again counts once', async (t) => {
  const { spool } = await spoolOf(t, HEADER, 'a,corp:x,', 'a,corp:x,', 'a,corp:x,bad')
  t.match(spool.page(null, 9), { rows: [{ threadId: 'a', line: 2 }], disputed: [], repeated: 1 })
})

void test('a thread that two lines give to different users is nobody’s, wherever they stand', async (t) => {
  const { spool } = await spoolOf(t, HEADER, 'a,corp:x,', 'b,corp:x,', 'a,corp:x,', 'a,corp:y,')
  t.match(spool.page(null, 9), { rows: [{ threadId: 'b' }], disputed: [key('a')] })
  t.same(rivals(spool, 'a'), ['2: corp:x', '4: corp:x', '5: corp:y'])
  t.equal(spool.ownerOf(key('a')), 'disputed')
})

void test('users differ byte for byte', async (t) => {
  const { spool } = await spoolOf(
    t,
    HEADER,
    'a,corp:x,',
    'a,corp:X,',
    'b,corp:\u00e9,',
    'b,corp:e\u0301,',
    'c,corp:x,',
    'c,corp:x ,',
  )
  t.same(spool.page(null, 9).disputed, ['a', 'b', 'c'].map(key))
})

void test('a line that cannot be taken disputes what it gives to somebody else, and is no claim of its own', async (t) => {
  const { spool } = await spoolOf(t, HEADER, 'a,corp:x,bad', 'a,corp:y,', 'b,crop:z,', 'c,corp:x,bad', 'c,corp:x,')
  t.match(spool.page(null, 9), { rows: [{ threadId: 'c', line: 6 }], disputed: [key('a')] })
  t.equal(spool.ownerOf(key('b')), null)
})

void test('nobody and somebody dispute a thread, too', async (t) => {
  const { spool } = await spoolOf(t, HEADER, 'a,corp:x,', 'a,nobody,')
  t.same(spool.page(null, 9).disputed, [key('a')])
})

void test('its file has mode 0600 and no name, so that nothing is left when the process is killed', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const holder = fileURLToPath(new URL('spool-holder.ts', import.meta.url))
  const child = spawn(process.execPath, [holder], { env: { PATH: process.env['PATH'], SQLITE_TMPDIR: folder } })
  t.teardown(() => child.kill('SIGKILL'))
  const [told] = (await once(child.stdout, 'data')) as [Buffer]
  t.same(readdirSync(folder), [], 'no name')
  const fds = `/proc/${child.pid ?? 0}/fd`
  if (process.platform === 'linux') {
    const open = JSON.parse(told.toString()) as string[]
    t.ok(open.length > 0, 'it is on the disk')
    for (const fd of open) t.equal(statSync(`${fds}/${fd}`).mode & 0o777, 0o600)
  }
  child.kill('SIGKILL')
  await once(child, 'close')
  t.same(readdirSync(folder), [])
})

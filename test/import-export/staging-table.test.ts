/** What is put aside: threads on which all lines agree, those on which they don't, and no trace of it left behind. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test, type Test } from 'tap'
import { fill } from '../../src/tools/import-export/import.ts'
import { entriesOf } from '../../src/tools/import-export/source-file.ts'
import { makeStagingTable, type StagingTable } from '../../src/tools/import-export/staging-table.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { inPieces, READING } from './sources.ts'
import { key } from './store.ts'

const HEADER = 'thread,user,created'

/** A staging table with what lines of CSV say. */
async function stagingTableOf(
  t: Test,
  ...lines: readonly string[]
): Promise<{ readonly table: StagingTable; readonly threads: number }> {
  const table = makeStagingTable()
  t.teardown(() => table.close())
  const entries = entriesOf(inPieces(lines.join('\n')), 'csv', READING)
  const { threads } = await fill(entries, table, { signal: new AbortController().signal, onProblem: () => {} })
  return { table, threads }
}

const rivals = (table: StagingTable, threadId: string): readonly string[] =>
  [...table.rivals(key(threadId))].map(({ line, owner }) => `${line}: ${owner}`)

void test('threads come in the order of their ids, byte for byte, in pages', async (t) => {
  const { table, threads } = await stagingTableOf(t, HEADER, 'b,corp:x,', 'B,corp:x,', 'a,corp:x,', 'c,corp:x,')
  t.equal(threads, 4)
  const first = table.page(null, 3)
  t.same(
    first.rows.map(({ threadId, line }) => `${threadId} ${line}`),
    ['B 3', 'a 4', 'b 2'],
  )
  const second = table.page(first.next, 3)
  t.same(
    second.rows.map(({ threadId }) => threadId),
    ['c'],
  )
  t.equal(second.next, null)
})

void test('a thread of one upstream disputes nothing of another, and pages go on from one to the next', async (t) => {
  const lines = ['a,corp:y,legal', 'a,corp:x,', 'b,corp:x,legal', 'b,corp:z,legal', 'a,corp:y,legal', 'a,corp:x,research']
  const { table, threads } = await stagingTableOf(t, 'thread,user,scope', ...lines)
  t.equal(threads, 4)
  const pages = [table.page(null, 2)]
  for (let next = pages[0]?.next ?? null; next !== null; next = pages.at(-1)?.next ?? null) pages.push(table.page(next, 2))
  t.same(
    pages.flatMap(({ rows }) => rows.map(({ scope, threadId, owner }) => `${scope}/${threadId}=${owner}`)),
    ['/a=corp:x', 'legal/a=corp:y', 'research/a=corp:x'],
  )
  const b = { scope: 'legal', threadId: 'b' }
  t.same(
    pages.flatMap(({ disputed }) => disputed),
    [b],
  )
  t.equal(table.ownerOf(b), 'disputed')
  t.equal(table.ownerOf(key('b')), null)
  t.same(
    [...table.rivals(b)].map(({ owner }) => owner),
    ['corp:x', 'corp:z'],
  )
})

void test('what a line says again counts once', async (t) => {
  const { table } = await stagingTableOf(t, HEADER, 'a,corp:x,', 'a,corp:x,', 'a,corp:x,bad')
  t.match(table.page(null, 9), { rows: [{ threadId: 'a', line: 2 }], disputed: [], repeated: 1 })
})

void test('a thread that two lines give to different users is nobody’s, wherever they stand', async (t) => {
  const { table } = await stagingTableOf(t, HEADER, 'a,corp:x,', 'b,corp:x,', 'a,corp:x,', 'a,corp:y,')
  t.match(table.page(null, 9), { rows: [{ threadId: 'b' }], disputed: [key('a')] })
  t.same(rivals(table, 'a'), ['2: corp:x', '4: corp:x', '5: corp:y'])
  t.equal(table.ownerOf(key('a')), 'disputed')
})

void test('users differ byte for byte', async (t) => {
  const { table } = await stagingTableOf(
    t,
    HEADER,
    'a,corp:x,',
    'a,corp:X,',
    'b,corp:\u00e9,',
    'b,corp:e\u0301,',
    'c,corp:x,',
    'c,corp:x ,',
  )
  t.same(table.page(null, 9).disputed, ['a', 'b', 'c'].map(key))
})

void test('a line that cannot be taken disputes what it gives to somebody else, and is no claim of its own', async (t) => {
  const { table } = await stagingTableOf(t, HEADER, 'a,corp:x,bad', 'a,corp:y,', 'b,crop:z,', 'c,corp:x,bad', 'c,corp:x,')
  t.match(table.page(null, 9), { rows: [{ threadId: 'c', line: 6 }], disputed: [key('a')] })
  t.equal(table.ownerOf(key('b')), null)
})

void test('nobody and somebody dispute a thread, too', async (t) => {
  const { table } = await stagingTableOf(t, HEADER, 'a,corp:x,', 'a,nobody,')
  t.same(table.page(null, 9).disputed, [key('a')])
})

void test('its file has mode 0600 and no name, so that nothing is left when the process is killed', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const holder = fileURLToPath(new URL('staging-table-holder.ts', import.meta.url))
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

/** `threadwarden threads export`: to stdout or to a file of its own, whole or not at all. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import type { Store } from '../../src/store/port/store.ts'
import { deployment, key, own, ownersIn } from './deployment.ts'
import { run } from '../../testing/support/program.ts'

const ALICE = 'corp:alice'

async function fillStore(store: Store): Promise<void> {
  await own(store, ALICE, 'a', 'b')
  await own(store, 'corp:bob', 'c')
  await store.bury(key('b'), ALICE, 1, 'unknown')
}

void test('stdout has the lines and nothing else', async (t) => {
  const { file, store } = await deployment(t)
  await fillStore(store)
  const { code, stdout, stderr } = await run(t, ['threads', 'export', '--config', file])
  t.same({ code, stderr }, { code: 0, stderr: '' })
  t.match(stdout, /^thread,user,agent,name,archived,created,used\na,corp:alice,default,,false,\S+Z,\S+Z\nc,corp:bob,\S+\n$/)
})

void test('the format is that of the name of the file, and the file is for its owner’s eyes', async (t) => {
  const { folder, store, command } = await deployment(t)
  await fillStore(store)
  const output = join(folder, 'threads.jsonl')
  t.same(await command('threads', 'export', '--output', output, '--all'), {
    code: 0,
    stdout: '',
    stderr: `3 threads written to ${output}\n`,
  })
  const lines = readFileSync(output, 'utf8').trimEnd().split('\n')
  t.match(JSON.parse(lines[1] ?? ''), { thread: 'b', user: ALICE, deleted: '1970-01-01T00:00:00.001Z' })
  t.equal(statSync(output).mode & 0o777, 0o600)
  const csv = join(folder, 'threads.txt')
  t.match(await command('threads', 'export', '--output', csv, '--quiet'), { code: 0 })
  t.match(readFileSync(csv, 'utf8'), /^thread,user,/)
})

void test('a file that is there is not written over', async (t) => {
  const { folder, store, command } = await deployment(t)
  await fillStore(store)
  const output = join(folder, 'threads.csv')
  writeFileSync(output, 'mine')
  t.match(await command('threads', 'export', '--output', output), {
    code: 1,
    stdout: '',
    stderr: /already exists: name another file/,
  })
  t.equal(readFileSync(output, 'utf8'), 'mine')
  const nowhere = join(folder, 'no', 'threads.csv')
  t.match(await command('threads', 'export', '--output', nowhere), {
    code: 1,
    stderr: /cannot be written: its folder does not exist/,
  })
})

void test('what is exported here is imported there', async (t) => {
  const [here, there] = [await deployment(t), await deployment(t)]
  await fillStore(here.store)
  const output = join(here.folder, 'threads.csv')
  await here.command('threads', 'export', '--output', output, '--all')
  t.match(await there.command('threads', 'import', output), { code: 0, stdout: /^3 +added$/m })
  t.same(await ownersIn(there.store), await ownersIn(here.store))
})

void test('a reader that has had enough ends it, without a stack trace', async (t) => {
  const { file, store } = await deployment(t)
  const row = { scope: '', owner: ALICE, agentId: '', name: 'x'.repeat(500), archived: false, createdAt: 1, lastUsedAt: 1 }
  const rows = Array.from({ length: 5000 }, (_one, at) => ({ ...row, threadId: `t-${at}` }))
  await store.import(rows, { dryRun: false, settleConflicts: false })
  const program = fileURLToPath(new URL('../../src/cli.ts', import.meta.url))
  const child = spawn(process.execPath, [program, 'threads', 'export', '--config', file], { env: { PATH: process.env['PATH'] } })
  const closed = once(child, 'close') as Promise<[number | null]>
  const stderr = text(child.stderr)
  await once(child.stdout, 'data')
  child.stdout.destroy()
  t.same(await closed, [1, null])
  t.equal(await stderr, 'error: stdout was closed before the end\n')
})

/**
 * A SQLite file that fails under a gateway that serves: what needs the store is 503, what does not goes on, /readyz says so,
 * nobody is let through who should not be, and it is right again by itself.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { makeFolder } from '../../testing/support/gateway.ts'
import { until } from '../../testing/support/until.ts'
import { damage, filled, LAST } from '../store/damage.ts'
import { holdLock } from '../store/lock-holder.ts'
import { askAs } from '../../testing/races/crowd.ts'
import { faultyScene } from './faulty-scene.ts'

const isRoot = process.getuid?.() === 0
/** A user who may nothing: root may write what is not to be written. */
const NOBODY_UID = 65_534

function place(t: Test): { readonly folder: string; readonly file: string; readonly address: { readonly store: string } } {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'ownership.db')
  return { folder, file, address: { store: `sqlite:${file}` } }
}

void test('locked by another process', async (t) => {
  const { file, address } = place(t)
  const scene = await faultyScene(t, address)
  const release = await holdLock(t, file)
  const { base } = scene.gateway
  const waiting = askAs(scene, base, 'new', 'bob', 'started')
  const owner = await askAs(scene, base, scene.thread, 'alice', 'started')
  t.same(await scene.failing('reads'), [])
  const told = await waiting
  t.match(told, { status: 503, code: 'store-unavailable' })
  t.match(owner, { status: 200 })
  t.ok(owner.to < told.to, 'nobody waits with those who wait for the lock')
  await release()
  t.same(await scene.recovered(), [])
})

void test('moved away', async (t) => {
  const { file, address } = place(t)
  const scene = await faultyScene(t, address)
  renameSync(file, `${file}.away`)
  t.same(await scene.failing('nothing'), [])
  t.notOk(existsSync(file), 'and not made anew: in an empty one every thread would be nobody’s')
  renameSync(`${file}.away`, file)
  t.same(await scene.recovered(), [])
})

void test('corrupt', async (t) => {
  const { file, address } = place(t)
  await filled(file, 'corp:alice')
  const mend = damage(file)
  const scene = await faultyScene(t, address, { thread: LAST.threadId })
  // Damage is only seen where it is.
  t.match(await askAs(scene, scene.gateway.base, scene.thread, 'bob', 'started'), { status: 503, code: 'store-unavailable' })
  t.same(await scene.failing('nothing'), [])
  mend()
  t.same(await scene.recovered(), [])
})

void test('on a disk that takes no more', async (t) => {
  if (spawnSync('prlimit', ['--version']).status !== 0) return t.comment('there is no prlimit here')
  const scene = await faultyScene(t, place(t).address)
  const limit = (bytes: number | 'unlimited'): void => {
    const done = spawnSync('prlimit', ['--pid', String(scene.gateway.pid), `--fsize=${bytes}:`])
    if (done.status !== 0) throw new Error(done.stderr.toString())
  }
  // Writes beyond it fail (EFBIG), as they do on a disk that breaks.
  limit(1000)
  t.match(await askAs(scene, scene.gateway.base, 'new', 'bob', 'started'), { status: 503, code: 'store-unavailable' })
  t.same(await scene.failing('reads'), [])
  limit('unlimited')
  t.same(await scene.recovered(), [])
})

void test('on a disk that is full', async (t) => {
  const { folder } = place(t)
  const small = join(folder, 'small')
  mkdirSync(small)
  if (!isRoot || spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', small]).status !== 0)
    return t.comment('a file system of its own can’t be mounted here')
  // Before what place does: a folder that is mounted can't be removed.
  t.teardown(() => spawnSync('umount', ['-l', small]))
  const scene = await faultyScene(t, { store: `sqlite:${join(small, 'ownership.db')}` })
  const filler = join(small, 'filler')
  t.throws(() => writeFileSync(filler, Buffer.alloc(2 ** 20)), /ENOSPC/)
  // Pages that the log has already may still be written.
  for (let told = 200, n = 0; told === 200; n += 1)
    told = (await askAs(scene, scene.gateway.base, `filler-${n}`, 'bob', 'started')).status
  t.same(await scene.failing('reads'), [])
  rmSync(filler)
  t.same(await scene.recovered(), [])
})

void test('read-only', async (t) => {
  const { folder, file, address } = place(t)
  const user = isRoot ? NOBODY_UID : undefined
  const runs = { ...(user === undefined ? {} : { uid: user, gid: user }), cwd: '/' }
  if (spawnSync(process.execPath, ['--version'], runs).status !== 0) return t.comment('nobody else may run what is here')
  if (user !== undefined) chownSync(folder, user, user)
  const scene = await faultyScene(t, address, { user })
  // A file that is open stays as it was opened.
  renameSync(file, `${file}.away`)
  t.same(await scene.failing('nothing'), [])
  chmodSync(`${file}.away`, 0o444)
  renameSync(`${file}.away`, file)
  await until(async () => (await askAs(scene, scene.gateway.base, scene.thread, 'alice', 'read')).status === 200)
  t.same(await scene.failing('reads'), [])
  chmodSync(file, 0o644)
  t.same(await scene.recovered(), [])
})

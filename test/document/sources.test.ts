/** Files that are read once: their bytes, their hashes, and what is left of them after the activation. */
import { chmodSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { areSame, Sources } from '../../src/document/sources.ts'
import { makeFolder } from '../../testing/support/gateway.ts'

const CHANGED = { message: /^keys or certificates have changed/ }

function key(t: Test): string {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'key')
  writeFileSync(file, 'first')
  return file
}

void test('a file that changes is the one that was read first', (t) => {
  const file = key(t)
  const sources = new Sources()
  t.equal(sources.text(file), 'first')
  writeFileSync(file, 'second')
  t.equal(sources.text(file), 'first')
  t.notOk(sources.isCurrent())
  t.end()
})

void test('a file that cannot be read is so to the end, with the code of the system', (t) => {
  const file = `${key(t)}-of-tomorrow`
  const sources = new Sources()
  t.same(sources.read(file), { error: 'ENOENT' })
  t.ok(sources.isCurrent())
  writeFileSync(file, 'here')
  t.same(sources.read(file), { error: 'ENOENT' })
  t.notOk(sources.isCurrent())
  t.throws(() => sources.text(file), { message: `${file} does not exist` })
  t.end()
})

void test('a file with another time and the same content has not changed', (t) => {
  const file = key(t)
  const sources = new Sources()
  sources.read(file)
  utimesSync(file, 1, 1)
  chmodSync(file, 0o600)
  t.ok(sources.isCurrent())
  t.end()
})

void test('after the release the file has to be as it was', (t) => {
  const file = key(t)
  const sources = new Sources()
  sources.read(file)
  sources.release()
  t.equal(sources.text(file), 'first')
  sources.release()
  writeFileSync(file, 'second')
  t.throws(() => sources.read(file), CHANGED)
  rmSync(file)
  sources.release()
  t.throws(() => sources.read(file), CHANGED)
  t.end()
})

void test('another process reads what this one has checked, or nothing', (t) => {
  const file = key(t)
  const here = new Sources()
  here.read(file)
  const there = new Sources(structuredClone(here.hashes))
  t.equal(there.text(file), 'first')
  t.ok(areSame(there.hashes, here.hashes))
  writeFileSync(file, 'second')
  const later = new Sources(here.hashes)
  t.throws(() => later.read(file), CHANGED)
  t.equal(later.hashes.get(file), here.hashes.get(file))
  t.end()
})

void test('a rotating file is read once, and its changes are not those of the configuration', (t) => {
  const file = key(t)
  const sources = new Sources()
  t.match(sources.readRotating(file), { bytes: Buffer.from('first') })
  writeFileSync(file, 'second')
  t.match(sources.readRotating(file), { bytes: Buffer.from('first') })
  t.same([sources.states.size, sources.hashes.size, sources.isCurrent()], [0, 0, true])
  t.end()
})

void test('another process gets what was read, and then needs no file', (t) => {
  const file = key(t)
  const here = new Sources()
  here.read(file)
  here.read(`${file}-of-tomorrow`)
  const files = here.held
  here.release()
  t.equal(here.held.size, 0)
  writeFileSync(file, 'second')
  const there = new Sources(here.hashes, files)
  t.equal(there.text(file), 'first')
  t.same(there.read(`${file}-of-tomorrow`), { error: 'ENOENT' })
  const other = new Map([[file, { bytes: Buffer.from('other') }]])
  t.throws(() => new Sources(here.hashes, other).read(file), CHANGED)
  t.end()
})

void test('no message to another process contains the bytes', (t) => {
  const file = key(t)
  const sources = new Sources()
  sources.read(file)
  t.same({ ...structuredClone({ sources }).sources }, {})
  t.end()
})

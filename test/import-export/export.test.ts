/** What is exported can be imported: the store that comes of it decides as the first one did. */
import { test } from 'tap'
import fc from 'fast-check'
import { exportLines, hasScopes, rowsOf } from '../../src/tools/import-export/export.ts'
import { importFrom } from '../../src/tools/import-export/import.ts'
import { entriesOf, FORMATS, type Format } from '../../src/tools/import-export/source-file.ts'
import type { ThreadRow } from '../../src/store/port/administration.ts'
import type { Store } from '../../src/store/port/store.ts'
import { inPieces, READING } from './sources.ts'
import { key, optionsFor, own, startStore } from './store.ts'

async function exported(store: Store, format: Format, all: boolean): Promise<string> {
  const filter = { deleted: all ? 'too' : 'no' } as const
  const rows = rowsOf(store, filter, (step) => step())
  const scope = await hasScopes(store, filter, (step) => step())
  let text = ''
  for await (const line of exportLines(rows, format, { deleted: all, scope })) text += line
  return text
}

async function imported(store: Store, text: string, format: Format): Promise<void> {
  const { options, problems } = optionsFor()
  const source = { entries: entriesOf(inPieces(text, 50), format, READING), mapping: null }
  const tally = { added: 0, same: 0, conflicts: 0 }
  await importFrom(source, store, tally, { ...options, onRead: () => {}, onSettled: () => {} })
  if (problems.length > 0) throw new Error(JSON.stringify(problems))
}

const rows = (store: Store): Promise<readonly ThreadRow[]> => store.threads({ deleted: 'too' }, null, 5000)

for (const format of FORMATS) {
  void test(`${format}: everything comes back`, async (t) => {
    const [one, other] = [await startStore(t), await startStore(t)]
    const odd = ['=1+1', '"', ',', '\r\n', 'a\nb', ' x ', 'true', 'ä🧀', '\u2028', '']
    for (const [at, name] of odd.entries()) {
      await own(one, `t-${at}`, 'corp:alice')
      await one.rename(key(`t-${at}`), 'corp:alice', name)
    }
    await one.archive(key('t-1'), 'corp:alice', { archived: true })
    await one.bury(key('t-2'), 'corp:alice', 12_345, 'unknown')
    await own(one, 'comma', 'corp:a,"b"')
    await imported(other, await exported(one, format, true), format)
    const empty = (row: ThreadRow): ThreadRow => (row.name === '' ? { ...row, name: null } : row)
    t.same(await rows(other), (await rows(one)).map(empty))
  })

  void test(`${format}: an owner that was taken away stays away`, async (t) => {
    const [one, other] = [await startStore(t), await startStore(t)]
    await own(one, 'a', 'corp:alice')
    await one.withhold(key('a'), 1)
    await own(one, 'b', 'corp:eve')
    await one.erase('corp:eve', 1, 10)
    await imported(other, await exported(one, format, true), format)
    const claim = { userId: 'corp:alice', agentId: '', guest: false, now: 1 }
    for (const id of ['a', 'b']) t.same(await other.claim(key(id), claim), { outcome: 'foreign' })
  })

  void test(`${format}: any names and users`, async (t) => {
    const user = fc
      .string({ unit: 'binary', minLength: 1, maxLength: 20 })
      .filter((text) => !/[\u0000-\u001f\u007f-\u009f]/.test(text))
    const name = fc.option(fc.string({ unit: 'binary', minLength: 1 }).filter((text) => !text.includes('\0')))
    await fc.assert(
      fc.asyncProperty(fc.array(fc.record({ user, name }), { minLength: 1, maxLength: 5 }), async (threads) => {
        const list: ThreadRow[] = threads.map((thread, at) => ({
          ...key(`t-${at}`),
          owner: `corp:${thread.user}`,
          agentId: '',
          name: thread.name,
          archived: false,
          createdAt: at,
          lastUsedAt: at,
          deletedAt: null,
          provisional: false,
        }))
        let text = ''
        for await (const line of exportLines(
          (async function* () {
            yield* list
          })(),
          format,
          { deleted: false, scope: false },
        ))
          text += line
        const read: unknown[] = []
        for await (const entry of entriesOf(inPieces(text, 11), format, READING))
          read.push(entry.kind === 'row' ? [entry.threadId, entry.owner, entry.facts.name, entry.facts.lastUsedAt] : entry)
        t.same(
          read,
          list.map((row) => [row.threadId, row.owner, row.name, row.lastUsedAt]),
        )
      }),
      { numRuns: 60 },
    )
  })
}

for (const format of FORMATS) {
  void test(`${format}: threads of one id at several upstreams come back where they were`, async (t) => {
    const [one, other] = [await startStore(t), await startStore(t)]
    const row = { threadId: 'a', agentId: '', name: null, archived: false, createdAt: 1, lastUsedAt: 1 }
    for (const [scope, owner] of [
      ['', 'corp:alice'],
      ['legal', 'corp:bob'],
      ['research', 'corp:alice'],
    ] as const)
      await one.import([{ ...row, scope, owner }], { dryRun: false, settleConflicts: false })
    await one.bury({ scope: 'research', threadId: 'a' }, 'corp:alice', 5, 'unknown')
    await imported(other, await exported(one, format, true), format)
    t.same(await rows(other), await rows(one))
  })
}

void test('there is a column for scopes where a row has one', async (t) => {
  const store = await startStore(t)
  await own(store, 'a', 'corp:alice')
  await store.claim({ scope: 'legal', threadId: 'b' }, { userId: 'corp:alice', agentId: '', guest: false, now: 1 })
  const [header, ...lines] = (await exported(store, 'csv', false)).trimEnd().split('\n')
  t.equal(header, 'thread,user,agent,name,archived,created,used,scope')
  t.match(lines, [/^a,corp:alice,.*Z,$/, /^b,corp:alice,.*Z,legal$/])
  await store.bury({ scope: 'legal', threadId: 'b' }, 'corp:alice', 1, 'unknown')
  t.match(await exported(store, 'csv', false), /^thread,user,agent,name,archived,created,used\na,/)
  t.match(await exported(store, 'csv', true), /^thread,user,agent,name,archived,created,used,deleted,scope\n/)
})

void test('without tombstones there is no column for them', async (t) => {
  const store = await startStore(t)
  await own(store, 'a', 'corp:alice')
  await own(store, 'b', 'corp:alice')
  await store.bury(key('b'), 'corp:alice', 1, 'unknown')
  const [header, ...lines] = (await exported(store, 'csv', false)).trimEnd().split('\n')
  t.equal(header, 'thread,user,agent,name,archived,created,used')
  t.match(lines, [/^a,corp:alice,default,,false,2026-06-01T00:00:00\.000Z,/])
  t.equal(lines.length, 1)
})

void test('it goes over more than a page, each row once and in order', async (t) => {
  const store = await startStore(t)
  const ids = Array.from({ length: 2500 }, (_one, at) => `t-${String(at).padStart(4, '0')}`)
  const row = { scope: '', owner: 'corp:alice', agentId: '', name: null, archived: false, createdAt: 1, lastUsedAt: 1 }
  await store.import(
    ids.map((threadId) => ({ ...row, threadId })),
    { dryRun: false, settleConflicts: false },
  )
  const lines = (await exported(store, 'jsonl', false)).trimEnd().split('\n')
  t.same(
    lines.map((line) => (JSON.parse(line) as { thread: string }).thread),
    ids,
  )
})

/** CSV as RFC 4180 writes it, as it comes; what nobody can tell the lines of is refused as a whole. */
import { test } from 'tap'
import { faults, read } from './sources.ts'

const ids = async (text: string | Uint8Array): Promise<readonly string[]> =>
  (await read(text, 'csv')).map(
    (entry) => `${entry.line}: ${entry.kind === 'row' ? `${entry.threadId}=${entry.owner}` : 'fault'}`,
  )

void test('the columns are in the order of the header', async (t) => {
  t.match(await read('name,user,thread\n"a, b",corp:alice,t-1\n', 'csv'), [
    { kind: 'row', threadId: 't-1', owner: 'corp:alice', facts: { name: 'a, b' } },
  ])
})

void test('lines may end with CR LF, the last one without an end, and there may be a byte order mark and empty lines', async (t) => {
  t.same(await ids('\ufeffthread,user\r\nt-1,corp:a\r\n\r\nt-2,corp:b\nt-3,corp:c'), [
    '2: t-1=corp:a',
    '4: t-2=corp:b',
    '5: t-3=corp:c',
  ])
})

void test('a quoted field may hold quotes, commas and ends of lines', async (t) => {
  const [entry] = await read('thread,user,name\nt-1,corp:a,"a ""b"", \nc"\n', 'csv')
  t.match(entry, { facts: { name: 'a "b", \nc' } })
})

void test('archived is true or false in words', async (t) => {
  const found = await read('thread,user,archived\na,corp:a,true\nb,corp:a,false\nc,corp:a,\nd,corp:a,1\n', 'csv')
  t.same(
    found.map((entry) => (entry.kind === 'row' ? entry.facts.archived : entry.kind)),
    [true, false, false, 'fault'],
  )
})

void test('a line with too many or too few fields is a fault of that line alone', async (t) => {
  t.same(await faults('thread,user\nt-1\nt-2,corp:b,x\nt-3,corp:c\n', 'csv'), [
    '2: it has 1 fields, but the header has 2',
    '3: it has 3 fields, but the header has 2',
  ])
})

for (const [name, text, message] of [
  ['an empty file', '', /^the file is empty/],
  ['a header without a user', 'thread,agent\n', /^line 1: the column "user" is missing/],
  ['a header without a thread', 'user\n', /^line 1: the column "thread" is missing/],
  ['a column that is nearly one', 'thread,usr\n', /^line 1: the format has no column "usr": did you mean "user"\?/],
  ['a column in capitals', 'Thread,user\n', /no column "Thread": did you mean "thread"\?/],
  ['a column that is none', 'thread,user,organisation\n', /no column "organisation": it has: thread, user, agent/],
  ['a column twice', 'thread,user,user\n', /^line 1: the column "user" occurs twice/],
  ['semicolons', 'thread;user\n', /no column "thread;user"/],
  ['a quote that is never closed', 'thread,user\nt-1,"corp:a\nt-2,corp:b\n', /a quote is not closed/],
  ['a quote within a field', 'thread,user\nt-1,co"rp:a\n', /^line 2: a quote is in a wrong place/],
  ['text behind a closing quote', 'thread,user\nt-1,"corp"x:a\n', /^line 2: a quote is in a wrong place/],
  ['a line of 70000 bytes', `thread,user\nt,${'x'.repeat(70_000)}\n`, /^line 2: it is longer than 64KiB/],
  [
    'Latin-1',
    Buffer.concat([Buffer.from('thread,user\nt,corp:'), Buffer.from([0xe4]), Buffer.from('\n')]),
    /^the file is not UTF-8/,
  ],
  ['UTF-16', Buffer.from('\ufeffthread,user\nt,corp:a\n', 'utf16le'), /^the file is not UTF-8/],
  [
    'half a character at the end',
    Buffer.concat([Buffer.from('thread,user\nt,corp:'), Buffer.from([0xc3])]),
    /^the file is not UTF-8/,
  ],
] as const) {
  void test(`${name}: nothing is taken of the file`, async (t) => {
    await t.rejects(read(text, 'csv'), { name: 'SourceFault', message })
  })
}

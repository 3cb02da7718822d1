/**
 * Files of owners, as CSV or as JSON in lines: the format, a line, and then the file. A file that can't be read says so in one way;
 * every row has ids within their grammars; the pieces in which it comes make no difference; and an export of the rows is read as
 * the same rows.
 */
import assert from 'node:assert/strict'
import type { Entry, Row } from '../../../src/tools/import-export/entry.ts'
import { exportLines } from '../../../src/tools/import-export/export.ts'
import { entriesOf, type Format } from '../../../src/tools/import-export/source-file.ts'
import { SourceFault } from '../../../src/tools/import-export/problem.ts'
import type { ThreadRow } from '../../../src/store/port/administration.ts'
import { NOBODY } from '../../../src/store/port/thread.ts'
import { misreading } from '../other-readers.ts'

// oxfmt-ignore
export const words = [
  'csv\n', 'jsonl\n', 'thread,user,agent,name,archived,created,used,deleted,scope\n', 'thread,user\n', 't-1,corp:alice\n', '{"thread":"t-1","user":"corp:alice"}\n', '"agent":"a"', '"name":"N"',
  '"archived":true', '"created":"2026-01-31T12:00:00Z"', '"deleted":"2026-01-31T12:00:00+01:00"', '"scope":"main"', 'nobody', 'anonymous', 'partner:bob', 'true', 'false', 'main', '""', '"', ',', '\r\n', '\r', '\n', '\u00ef\u00bb\u00bf', '\0', "'", '=', '-', '+', '@', '\u00c3\u00a9', '\u00ed\u00a0\u0080', '2026-02-31T00:00Z', '\t',
]

const COLUMN_LINE = 'thread,user,agent,name,archived,created,used,deleted,scope\n'

// oxfmt-ignore
export const seeds = [
  `csv\n${COLUMN_LINE}t-1,corp:alice,a,N,true,2026-01-31T12:00:00Z,2026-01-31T12:00:00Z,,main\n`, 'csv\nthread,user\nt-1,corp:alice\nt-2,nobody\nt-3,anonymous\n', 'csv\nthread,user,name\r\nt-1,corp:alice,"a ""b"", c\nd"\r\n', 'csv\n\xef\xbb\xbfthread,user\nt-1,corp:a\n\n t,x\n', "csv\nthread,user,name\nt-1,corp:a,=1+1\nt-2,corp:b,'x\nt-3,corp:b,\"-1\r\n\"\n", 'csv\nthread,user,name\nt-1,corp:a,"\ra"\n',
  'csv\nthread,user\n"t', 'csv\nthread,thread\n', 'csv\nthread\n', 'csv\nthread,user\na"b,c\n', 'csv\nthread,user\na,b,c\n', 'csv\n', 'csv\nthread,user\n\xff,corp:a\n', 'csv\nthread,user\nt-1,other:a\nt-2, corp:b\nt-3,corp:b \nt-4,corp:\nt-5,corp\n../t,corp:a\nclear,corp:a\n123E4567-E89B-12D3-A456-426614174000,corp:a\n',
  'jsonl\n{"thread":"t-1","user":"corp:alice","agent":"a","name":"N\\n","archived":true,"created":"2026-01-31T12:00:00+01:00","used":"2026-01-31T12:00Z","deleted":"2026-01-31T12:00:00.5Z","scope":"main"}\n', 'jsonl\n{"thread":"t-1","user":"partner:b"}\n\n{"thread":"t-1","usr":"x"}\n[]\n', 'jsonl\n\xef\xbb\xbf{}', 'jsonl\n{"thread":"t-1","user":"nobody","archived":"false","name":"\\ud800"}\n', 'jsonl\n{"thread":"t-1","user":"other:b"}\n{"thread":"t-2","user":"corp:\\u0000"}\n{"thread":"t-3","user":"corp:a","name":"\\u0000"}\n{"thread":"t-3","user":"corp:a","agent":"constructor"}\n', 'jsonl\n{"thread":"123e4567e89b12d3a456426614174000","user":"corp:\xc3\xa9"}', 'jsonl\n{"thread":"t","user":"corp:a","thread":"u"}\n', 'jsonl\n{"thread":"t","user":"corp:a","created":"2026-02-31T00:00Z"}\n{"thread":"t","user":"corp:a","created":"9999-12-31T23:59:59.999-23:59"}\n{"thread":"u","user":"corp:a","created":"0000-01-01T00:00:00+23:59"}\n',
]

const NOW = Date.UTC(2026, 0, 31)
const ISSUERS = ['corp', 'partner']
const SCOPES = ['', 'main']
const READING = { users: { issuers: ISSUERS, anonymous: true }, scopes: SCOPES, scope: '', now: NOW } as const

export async function examine(input: Buffer): Promise<void> {
  const end = input.indexOf('\n')
  const format: Format = input.toString('latin1', 0, Math.max(end, 0)) === 'csv' ? 'csv' : 'jsonl'
  const file = Buffer.from(input.subarray(end + 1))
  const read = await entriesIn([file], format)
  for (const entry of read.entries) if (entry.kind === 'row') checkRow(entry)
  const odd = [...file.keys()].filter((at) => at > 0 && ((file[at] as number) + at) % 5 === 0)
  const again = await entriesIn(piecesOf(file, odd), format)
  // Where a file stops to be readable, the lines before may have been told already.
  if (read.isWhole || again.isWhole) assert.deepEqual(again, read, 'whatever the pieces')
  const rows = read.entries.filter((entry) => entry.kind === 'row')
  for (const written of ['csv', 'jsonl'] as const) {
    const text = await exported(rows, written)
    const back = await entriesIn([Buffer.from(text)], written)
    assert.deepEqual(back.entries.map(plain), rows.map(plain), `an export as ${written} is read as what it was made of`)
  }
}

/** What a file gives. A file of which nobody knows what is a line is refused; nothing else may be thrown. */
async function entriesIn(pieces: readonly Uint8Array[], format: Format) {
  const entries: Entry[] = []
  async function* bytes(): AsyncGenerator<Uint8Array> {
    yield* pieces
  }
  try {
    for await (const entry of entriesOf(bytes(), format, READING)) entries.push(entry)
    return { entries, isWhole: true }
  } catch (error) {
    if (!(error instanceof SourceFault)) throw error
    return { entries, isWhole: false }
  }
}

function checkRow({ scope, threadId, owner, facts }: Row): void {
  assert.match(threadId, /^[A-Za-z0-9](?:[A-Za-z0-9._:-]{0,126}[A-Za-z0-9_:-])?$/)
  assert.equal(misreading('threadId', threadId), null)
  assert.ok(SCOPES.includes(scope), scope)
  const [issuer = '', ...subject] = owner.split(':')
  if (owner !== NOBODY && owner !== 'anonymous') {
    assert.ok(ISSUERS.includes(issuer), owner)
    const id = subject.join(':')
    assert.ok(id !== '' && [...id].length <= 255 && id.isWellFormed(), owner)
    assert.doesNotMatch(id, /[\0-\x1f\x7f-\x9f]/)
  }
  if (facts.agentId !== '') assert.equal(misreading('agentId', facts.agentId), null)
  if (facts.name !== null) assert.ok(facts.name.length <= 1000 && facts.name.isWellFormed() && !facts.name.includes('\0'))
  for (const time of [facts.createdAt, facts.lastUsedAt, facts.deletedAt ?? 0]) assert.ok(Number.isSafeInteger(time))
}

async function exported(rows: readonly Row[], format: Format): Promise<string> {
  async function* stored(): AsyncGenerator<ThreadRow> {
    for (const { scope, threadId, owner, facts } of rows) yield { scope, threadId, owner, provisional: false, ...facts }
  }
  let text = ''
  for await (const line of exportLines(stored(), format, { deleted: true, scope: true })) text += line
  return text
}

function plain(entry: Entry) {
  return { ...entry, line: 0 }
}

function piecesOf(file: Buffer, places: readonly number[]): readonly Uint8Array[] {
  const ends = [...places, file.length]
  return ends.map((end, which) => new Uint8Array(file.subarray(ends[which - 1] ?? 0, end)))
}

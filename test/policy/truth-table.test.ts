/**
 * docs/reference/default-policy.md, which is written from what the default policy decides, says what the design says in "Who may do
 * what". The table of the design is written out here by hand, row by row.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'tap'
import { page, ROOT, rows } from '../docs/markdown.ts'

const PAGE = page('docs/reference/default-policy.md')
const NO = '403 `not-allowed`'
const FOREIGN = '403 `not-owner`'
const HIDDEN = '404 `not-found`'

/** Anonymous in mode optional, everybody in mode off, signed in, operator. */
type Answers = readonly [anonymous: string, off: string, signedIn: string, operator: string]
const all = (answer: string): Answers => [NO, answer, answer, answer]
const hidden = (answer: string): Answers => [HIDDEN, answer, answer, answer]
const nobody: Answers = [NO, NO, NO, NO]

/** Nothing can be granted to callers who are nobody in particular. */
const granted = (answer: string, otherwise = FOREIGN): Answers => [otherwise === HIDDEN ? HIDDEN : NO, otherwise, answer, answer]

const THREADS = ['own', 'shared for reading', 'shared for writing', 'unknown', "another's", 'deleted by another'] as const
/** A row of the design, by what the thread is to the caller. */
type Row = Readonly<Record<(typeof THREADS)[number], Answers>>
const OWNERS_ALONE: Row = {
  own: all('yes'),
  'shared for reading': all(FOREIGN),
  'shared for writing': all(FOREIGN),
  unknown: all(FOREIGN),
  "another's": all(FOREIGN),
  'deleted by another': all(FOREIGN),
}
const WRITERS: Row = { ...OWNERS_ALONE, 'shared for writing': granted('yes') }
const READERS: Row = { ...WRITERS, 'shared for reading': granted('yes') }
const READERS_HIDDEN: Row = {
  own: hidden('yes'),
  'shared for reading': granted('yes', HIDDEN),
  'shared for writing': granted('yes', HIDDEN),
  unknown: hidden(HIDDEN),
  "another's": hidden(HIDDEN),
  'deleted by another': hidden(HIDDEN),
}
// Whether the thread is there is told to nobody but those who were let in; its owner is told that no rule opens it.
const LEAVERS_ALONE: Row = { ...OWNERS_ALONE, own: nobody }
const LEAVING: Row = { ...LEAVERS_ALONE, 'shared for reading': granted('yes'), 'shared for writing': granted('yes') }
const CLOSED = Object.fromEntries(THREADS.map((thread) => [thread, nobody])) as Row

const WITHOUT_THREAD: Readonly<Record<string, Answers>> = {
  'GET info': all('yes'),
  'GET threads': all('yes'),
  'POST threads/subscribe': nobody,
  'POST transcribe': all('yes'),
  'POST threads/clear': [NO, NO, NO, 'yes'],
  'GET cpk-debug-events': nobody,
  'GET memories': nobody,
  'POST memories': nobody,
  'POST memories/recall': nobody,
  'POST memories/subscribe': nobody,
  'PATCH memories/:memoryId': nobody,
  'DELETE memories/:memoryId': nobody,
  'GET inspector-metadata': nobody,
  'GET inspector-learning': nobody,
}

const ABOUT_A_THREAD: Readonly<Record<string, Row>> = {
  'POST agent/:agentId/run': { ...WRITERS, unknown: all('claims') },
  'POST agent/:agentId/connect': { ...READERS, unknown: all('empty') },
  'POST agent/:agentId/suggest': { ...WRITERS, unknown: all('yes') },
  'POST agent/:agentId/stop/:threadId': WRITERS,
  'GET threads/:threadId/messages': READERS,
  'PATCH threads/:threadId': WRITERS,
  'PATCH threads/:threadId with archived': OWNERS_ALONE,
  'DELETE threads/:threadId': OWNERS_ALONE,
  'POST threads/:threadId/archive': OWNERS_ALONE,
  'POST annotate': WRITERS,
  'GET threads/:threadId/events': READERS_HIDDEN,
  'GET threads/:threadId/state': READERS_HIDDEN,
  'GET threadwarden/threads/:threadId/grants': CLOSED,
  'POST threadwarden/threads/:threadId/grants': CLOSED,
  'DELETE threadwarden/threads/:threadId/grants': LEAVERS_ALONE,
  "DELETE threadwarden/threads/:threadId/grants of the caller's own": LEAVING,
}

const EXPECTED = [
  ...Object.entries(WITHOUT_THREAD).map(([request, answers]) => [request, '–', answers] as const),
  ...Object.entries(ABOUT_A_THREAD).flatMap(([request, row]) =>
    Object.entries(row).map(([thread, answers]) => [request, thread, answers] as const),
  ),
]

/** What a page says, a line each, as `POST agent/:agentId/run, own: 403 not-allowed, yes, yes, yes`. */
function saidIn(text: string): readonly string[] {
  return rows(text).flatMap(([, request, threads = '', ...answers]) =>
    threads.split(', ').map((thread) => line(String(request).replaceAll('`', ''), thread, answers)),
  )
}

function line(request: string, thread: string, answers: readonly string[]): string {
  return `${request}, ${thread}: ${answers.join(', ')}`
}

const [plain = '', scoped = ''] = PAGE.text.split('## Before a user-scoped upstream')

void test('the written table is the one of the design', (t) => {
  const expected = EXPECTED.map(([request, thread, answers]) => line(request, thread, answers))
  t.same([...saidIn(plain)].sort(), expected.sort())
  t.end()
})

void test('before an upstream that scopes users, subscriptions alone are otherwise', (t) => {
  t.same(saidIn(scoped), [line('POST threads/subscribe', '–', all('yes'))])
  t.end()
})

void test('the written table is what the policy decides now', (t) => {
  const script = join(ROOT, 'scripts/truth-table.ts')
  const { status, stderr } = spawnSync(process.execPath, [script, '--check'], { encoding: 'utf8' })
  t.same({ status, stderr }, { status: 0, stderr: '' })
  t.end()
})

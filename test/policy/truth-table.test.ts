/**
 * docs/reference/default-policy.md is generated from the decisions of the default policy. Here the expected decisions are written
 * by hand, row by row.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'tap'
import { page, ROOT, rows, section } from '../docs/markdown.ts'

const PAGE = page('docs/reference/default-policy.md')
const NO = '`not-allowed`'
const FOREIGN = '`not-owner`'
const HIDDEN = '`not-found`'

const RELATIONS = ['own', 'own, deleted', 'unowned', 'shared to read', 'shared to write', 'foreign', 'foreign, deleted'] as const
type Row = Readonly<Record<(typeof RELATIONS)[number], string>>

const every = (answer: string): Row => Object.fromEntries(RELATIONS.map((relation) => [relation, answer])) as Row

// Signed-in users and operators.
const OWNERS: Row = { ...every(FOREIGN), own: 'yes' }
const WRITERS: Row = { ...OWNERS, 'shared to write': 'yes' }
const READERS: Row = { ...WRITERS, 'shared to read': 'yes' }
const READERS_HIDDEN: Row = { ...every(HIDDEN), own: 'yes', 'shared to read': 'yes', 'shared to write': 'yes' }
// Only its owner and its guests are told that the thread exists; the owner is told that no rule opens the route.
const GUESTS: Row = { ...every(FOREIGN), own: NO }
const onUnowned = (answer: string) => ({ unowned: answer, 'own, deleted': answer })

const LANGGRAPH: Readonly<Record<string, Row>> = {
  'langgraph/threads/create': { ...WRITERS, ...onUnowned('claims') },
  'langgraph/threads/read GET': READERS,
  'langgraph/threads/update': WRITERS,
  'langgraph/threads/delete': OWNERS,
  'langgraph/threads/copy': READERS,
  'langgraph/threads/read POST': READERS,
  'langgraph/threads/state': WRITERS,
  'langgraph/runs/create': { ...WRITERS, ...onUnowned('claims') },
  'langgraph/runs/read': READERS,
  'langgraph/runs/join': READERS,
  'langgraph/runs/cancel': WRITERS,
  'langgraph/runs/delete': OWNERS,
}

const SIGNED_IN: Readonly<Record<string, Row>> = {
  ...LANGGRAPH,
  'agent/run': { ...WRITERS, ...onUnowned('claims') },
  'agent/connect': { ...READERS, ...onUnowned('empty') },
  'agent/suggest': { ...WRITERS, ...onUnowned('yes') },
  'agent/stop': WRITERS,
  'threads/messages': READERS,
  'threads/update PATCH': WRITERS,
  'threads/update PATCH with archived': OWNERS,
  'threads/update DELETE': OWNERS,
  'threads/archive': OWNERS,
  annotate: WRITERS,
  'threads/events': READERS_HIDDEN,
  'threads/state': READERS_HIDDEN,
  'threads/grants GET': every(NO),
  'threads/grants POST': every(NO),
  'threads/grants DELETE': GUESTS,
  "threads/grants DELETE of the caller's own grant": { ...GUESTS, 'shared to read': 'yes', 'shared to write': 'yes' },
}

/** Nothing can be granted to callers without a user id: to them, a shared thread is foreign. */
const MODE_OFF = Object.fromEntries(
  Object.entries(SIGNED_IN).map(([request, row]) => [
    request,
    { ...row, 'shared to read': row.foreign, 'shared to write': row.foreign },
  ]),
)

/** Signed in, operator, anonymous in mode optional, every caller in mode off. */
const OTHERS: Readonly<Record<string, readonly string[]>> = {
  info: ['yes', 'yes', NO, 'yes'],
  transcribe: ['yes', 'yes', NO, 'yes'],
  'threads/list': ['yes', 'yes', NO, 'yes'],
  'threads/subscribe': [NO, NO, NO, NO],
  'threads/clear': [NO, 'yes', NO, NO],
  'memories/list GET': [NO, NO, NO, NO],
  'memories/list POST': [NO, NO, NO, NO],
  'memories/recall': [NO, NO, NO, NO],
  'memories/subscribe': [NO, NO, NO, NO],
  'memories/mutate PATCH': [NO, NO, NO, NO],
  'memories/mutate DELETE': [NO, NO, NO, NO],
  'inspector/metadata': [NO, NO, NO, NO],
  'inspector/learning': [NO, NO, NO, NO],
  'cpk-debug-events': [NO, NO, NO, NO],
  'langgraph/info': ['yes', 'yes', NO, 'yes'],
  'langgraph/assistants/search': ['yes', 'yes', NO, 'yes'],
  'langgraph/assistants/read GET': ['yes', 'yes', NO, 'yes'],
  'langgraph/assistants/read POST': ['yes', 'yes', NO, 'yes'],
  'langgraph/threads/search': ['yes', 'yes', NO, 'yes'],
  'langgraph/threads/count': ['yes', 'yes', NO, 'yes'],
}

const plain = (request = ''): string => request.replaceAll('`', '')

/** The rows below a heading of level 3, by request. */
function matrixOf(heading: string): Readonly<Record<string, Row>> {
  const [, text = ''] = section(PAGE, 'Requests about a thread').split(`### ${heading}\n`)
  return Object.fromEntries(
    rows(text.split('\n### ')[0] ?? '').map(([request, ...cells]) => [
      plain(request),
      Object.fromEntries(RELATIONS.map((relation, at) => [relation, cells[at]])) as Row,
    ]),
  )
}

void test('signed-in users and operators on each thread', (t) => {
  const [, head] = /^\| Request \| (own .*) \|$/m.exec(PAGE.text) ?? []
  t.equal(head, RELATIONS.join(' | '), 'the columns')
  t.same(matrixOf('Signed in, Operator'), SIGNED_IN)
  t.end()
})

void test('callers of mode off on each thread', (t) => {
  t.same(matrixOf('Mode off'), MODE_OFF)
  t.end()
})

void test('anonymous callers are refused on every thread', (t) => {
  const [, text = ''] = section(PAGE, 'Requests about a thread').split('### Anonymous\n')
  const answers = rows(text.split('\n### ')[0] ?? '').flatMap(([answer, requests = '']) =>
    requests.split(', ').map((request) => [plain(request), answer] as const),
  )
  const hidden = ['threads/events', 'threads/state']
  t.same(
    Object.fromEntries(answers),
    Object.fromEntries(Object.keys(SIGNED_IN).map((request) => [request, hidden.includes(request) ? HIDDEN : NO])),
  )
  t.end()
})

void test('requests that are about no thread', (t) => {
  const [text = '', scoped = ''] = section(PAGE, 'Other requests').split('With `upstream.userScoped: true`')
  const found = (part: string) => Object.fromEntries(rows(part).map(([request, ...cells]) => [plain(request), cells]))
  t.match(text, '| Request | Signed in | Operator | Anonymous | Mode off |')
  t.same(found(text), OTHERS)
  t.same(found(scoped), { 'threads/subscribe': ['yes', 'yes', NO, 'yes'] }, 'for an upstream that separates users')
  t.end()
})

void test('the page is what the policy decides now', (t) => {
  const script = join(ROOT, 'scripts/truth-table.ts')
  const { status, stderr } = spawnSync(process.execPath, [script, '--check'], { encoding: 'utf8' })
  t.same({ status, stderr }, { status: 0, stderr: '' })
  t.end()
})

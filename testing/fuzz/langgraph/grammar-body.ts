/**
 * Bodies for the routes of the server: members of its schemas with ids of others in every place, and then edits that two readers, or a
 * reader and a checker, would read differently.
 */
import fc from 'fast-check'
import { EVIL_VALUES, jsonText, membersEdits, texts, utf8, type Member } from '../grammar-body.ts'
import { anyId, assistantId, checkpointId, namespace, runId, threadId } from './grammar-ids.ts'
import { ASSISTANT, ENVIRONMENT, FOREIGN, OWN, runOf } from './world.ts'

const json = (value: unknown): string => JSON.stringify(value)
const text = (arbitrary: fc.Arbitrary<unknown>): fc.Arbitrary<string> => arbitrary.map(json)
const [theirs] = FOREIGN
const [own] = OWN

/** Places where some server could look for an id, around one. */
const placed = fc
  .tuple(
    anyId,
    fc.constantFrom<((id: string) => unknown)[]>(
      (id) => ({ thread_id: id }),
      (id) => ({ configurable: { thread_id: id } }),
      (id) => ({ config: { configurable: { thread_id: id } } }),
      (id) => ({ run_id: id }),
      (id) => ({ checkpoint_id: id }),
      (id) => ({ configurable: { checkpoint_id: id, checkpoint_ns: '', thread_id: id } }),
      (id) => [{ thread_id: id }],
      (id) => [id],
      (id) => ({ [id]: id }),
      (id) => ({ metadata: { thread_id: id, run_id: id, owner: id } }),
      (id) => ({ thread_id: [id] }),
      (id) => ({ thread_id: { toString: id } }),
      (id) => ({ thread_ts: id, parent_checkpoint: { thread_id: id } }),
      (id) => ({ outcome: 'refused', reason: id }),
    ),
  )
  .map(([id, place]) => place(id))

const some = <Value>(value: fc.Arbitrary<Value>, weight = 1): fc.Arbitrary<Value | undefined> =>
  fc.oneof({ arbitrary: value, weight }, { arbitrary: fc.constant(undefined), weight: 2 })

const checkpoint = fc.oneof(
  {
    arbitrary: fc.record({
      checkpoint_id: some(checkpointId, 4),
      checkpoint_ns: some(namespace, 2),
      checkpoint_map: some(
        fc.oneof(
          fc.tuple(namespace, checkpointId).map(([space, id]): unknown => ({ '': id, [space]: id })),
          placed,
        ),
      ),
      thread_id: some(fc.constantFrom(...OWN, ...OWN, ...FOREIGN)),
    }) as fc.Arbitrary<unknown>,
    weight: 6,
  },
  { arbitrary: placed, weight: 1 },
)

const CONFIGURABLE = [
  'model',
  'tenant',
  'thread_id',
  'run_id',
  'user_id',
  'checkpoint_id',
  'checkpoint_ns',
  'checkpoint_map',
  'graph_id',
]
// oxfmt-ignore
const MORE_CONFIGURABLE = [
  'thread_ts', 'assistant_id', 'langgraph_auth_user', 'langgraph_auth_user_id', 'langgraph_auth_permissions', 'langgraph_node', 'x-user', 'X-User', 'Thread_ID',
  'thread', 'thread-id', 'threadId', '__pregel_store', '__pregel_checkpointer', '__pregel_read', '__proto__', 'constructor', 'user-agent', 'checkpoint_during', '__protocol_v2',
]

const configurable = fc
  .array(
    fc.tuple(
      fc.oneof(
        { arbitrary: fc.constantFrom(...CONFIGURABLE), weight: 5 },
        { arbitrary: fc.constantFrom(...MORE_CONFIGURABLE), weight: 1 },
      ),
      fc.oneof<fc.MaybeWeightedArbitrary<unknown>[]>({ arbitrary: anyId, weight: 4 }, { arbitrary: placed, weight: 1 }),
    ),
    { maxLength: 2 },
  )
  // A name may be `__proto__`.
  .map((pairs): unknown => JSON.parse(`{${pairs.map(([name, value]) => `${json(name)}:${json(value)}`).join()}}`))

const config = fc.oneof(
  {
    arbitrary: fc.record({
      configurable: some(configurable, 4),
      tags: some(fc.constant(['a'])),
      recursion_limit: some(fc.constantFrom(5, 25, -1, 1e9)),
      metadata: some(placed),
      run_id: some(runId),
      thread_id: some(threadId),
      callbacks: some(placed),
    }) as fc.Arbitrary<unknown>,
    weight: 5,
  },
  { arbitrary: placed, weight: 1 },
)

const command = fc.oneof(
  { arbitrary: fc.constant<unknown>({ resume: 'yes' }), weight: 4 },
  {
    arbitrary: fc.record({
      resume: some(placed),
      update: some(placed),
      goto: some(fc.constantFrom('answer', 'inner', '__end__')),
    }) as fc.Arbitrary<unknown>,
    weight: 3,
  },
  {
    arbitrary: fc
      .tuple(fc.constantFrom('answer', 'inner', 'nowhere'), placed)
      .map(([node, input]): unknown => ({ goto: [{ node, input }] })),
    weight: 1,
  },
  { arbitrary: placed, weight: 1 },
)

const messages = fc.constantFrom<unknown[]>(
  { messages: 'hello' },
  { messages: [{ role: 'user', content: 'hello' }] },
  { messages: [{ type: 'human', content: [{ type: 'text', text: 'hello' }] }] },
  { messages: [['user', 'hello']] },
  { messages: [{ role: 'system', content: 'obey' }] },
  { messages: { type: 'remove', id: '__remove_all__' } },
  {
    messages: [{ lc: 1, type: 'constructor', id: ['langchain_core', 'messages', 'HumanMessage'], kwargs: { content: 'hello' } }],
  },
  { messages: [{ lc: 1, type: 'secret', id: [ENVIRONMENT] }] },
  null,
  [],
  'hello',
)

const input = fc.oneof({ arbitrary: messages, weight: 5 }, { arbitrary: placed, weight: 1 })

const metadata = fc.oneof(
  { arbitrary: fc.constantFrom<unknown[]>({}, { topic: 'x' }, { graph_id: ASSISTANT }, { owner: 'bob' }), weight: 4 },
  {
    arbitrary: fc.constantFrom('__proto__', 'constructor', 'toString', '', 'nothing').map((id): unknown => ({ graph_id: id })),
    weight: 1,
  },
  {
    arbitrary: fc
      .tuple(
        fc.constantFrom(
          'graph_id',
          'assistant_id',
          'thread_id',
          'run_id',
          'user_id',
          'owner',
          '__proto__',
          'langgraph_auth_user',
        ),
        anyId,
      )
      .map(([name, id]): unknown => JSON.parse(`{${json(name)}:${json(id)}}`)),
    weight: 3,
  },
  { arbitrary: placed, weight: 1 },
)

const ids = fc.oneof(
  { arbitrary: fc.array(threadId, { maxLength: 3 }) as fc.Arbitrary<unknown>, weight: 6 },
  {
    arbitrary: fc.constantFrom<unknown[]>(
      [],
      null,
      [[theirs]],
      [[]],
      { 0: theirs },
      theirs,
      [null],
      [theirs, null],
      '',
      {},
      [{ toString: theirs }],
      [`${own},${theirs}`],
    ),
    weight: 2,
  },
)

const WEBHOOKS = [
  'https://hooks.example/x',
  `/threads/${theirs}/runs`,
  `/threads/${theirs}/state`,
  `/threads/${theirs}/commands`,
  `/threads/${theirs}`,
  `//threads/${theirs}/runs`,
  `/\\threads/${theirs}/runs`,
  '/threads/search',
  '/runs',
  '/internal/truncate',
  `threads/${theirs}/runs`,
  `HTTP:/threads/${theirs}/runs`,
  '',
]

const page = fc.constantFrom<unknown[]>(0, 1, 10, 1000, 1001, -1, 1.5, '1', null, 1e9)

/** A value for each key of any route. */
const values: Readonly<Record<string, fc.Arbitrary<string>>> = {
  thread_id: text(threadId),
  thread_ids: text(fc.array(threadId, { maxLength: 2 })),
  assistant_id: text(assistantId),
  checkpoint: text(checkpoint),
  checkpoint_id: text(checkpointId),
  before: text(fc.oneof(checkpointId as fc.Arbitrary<unknown>, checkpoint, placed)),
  config: text(config),
  context: text(placed),
  command: text(command),
  input: text(input),
  values: text(input),
  metadata: text(metadata),
  ids: text(ids),
  supersteps: text(
    fc
      .tuple(fc.constantFrom('answer', 'inner', '__start__', 'nowhere'), input, some(command))
      .map(([as_node, given, done]): unknown => [{ updates: [{ values: given, as_node, command: done }] }]),
  ),
  as_node: text(fc.constantFrom('answer', 'inner', '__start__', 'nowhere', theirs)),
  if_exists: text(fc.constantFrom('raise', 'do_nothing', 'do_nothing', 'replace', null)),
  if_not_exists: text(fc.constantFrom('create', 'create', 'reject', null)),
  multitask_strategy: text(fc.constantFrom('enqueue', 'interrupt', 'rollback', 'reject', 'x')),
  on_disconnect: text(fc.constantFrom('cancel', 'continue')),
  on_completion: text(fc.constantFrom('delete', 'keep')),
  stream_mode: text(
    fc.constantFrom<unknown[]>('values', ['values', 'debug'], ['events'], ['checkpoints', 'tasks'], 'messages-tuple', 'x'),
  ),
  stream_subgraphs: text(fc.constantFrom(true, false)),
  stream_resumable: text(fc.constantFrom(true, false)),
  after_seconds: text(fc.constantFrom(0, 1, -1)),
  durability: text(fc.constantFrom('async', 'sync', 'exit')),
  checkpoint_during: text(fc.constantFrom(true, false)),
  feedback_keys: text(fc.constantFrom([], ['a'])),
  interrupt_before: text(fc.constantFrom<unknown[]>('*', ['inner'], [])),
  interrupt_after: text(fc.constantFrom<unknown[]>('*', ['answer'], [])),
  webhook: text(fc.constantFrom(...WEBHOOKS)),
  langsmith_tracer: text(fc.constant({ project_name: 'x' })),
  subgraphs: text(fc.constantFrom<unknown[]>('true', 'false', true)),
  status: text(fc.constantFrom('idle', 'busy', 'interrupted', 'error', 'x')),
  limit: text(page),
  offset: text(page),
  sort_by: text(fc.constantFrom('created_at', 'thread_id', 'status', 'x', '__proto__')),
  sort_order: text(fc.constantFrom('asc', 'desc')),
  select: text(
    fc.constantFrom<unknown[]>(['thread_id'], ['values'], ['metadata', 'status'], [], ['thread_id', 'thread_id'], 'thread_id', [
      ['thread_id'],
    ]),
  ),
  graph_id: text(assistantId),
  name: text(fc.constantFrom('n', '')),
  right: text(fc.constantFrom('read', 'write')),
  user: text(fc.constantFrom('corp:alice', 'corp:bob')),
  group: text(fc.constant('team')),
  method: text(fc.constantFrom('run.start', 'state.get', 'subscription.subscribe')),
  params: text(placed),
  channels: text(fc.constant(['values'])),
}

/** Without these, the server or the gateway takes no such body. */
const REQUIRED: ReadonlySet<string> = new Set(['assistant_id', 'right', 'user', 'method', 'channels'])

const KEYS = [
  ...Object.keys(values).map(json),
  ...[
    '"\\u0074hread_id"',
    '"thread\\u005fid"',
    '"threadId"',
    '"thread-id"',
    '"Thread_id"',
    '" thread_id"',
    '"thread_id\\u0000"',
    '"\\u0069ds"',
    '"check\\u0070oint"',
  ],
  ...[
    '"configurable"',
    '"\\u0063onfig"',
    '"__proto__"',
    '"\\u005f_proto__"',
    '"constructor"',
    '"prototype"',
    '"toString"',
    '"run_id"',
    '"user_id"',
    '""',
  ],
  ...['"temporary"', '"auth"', '"kwargs"', '"delete_threads"', '"runs"', '"threads"', 'thread_id', "'thread_id'"],
]

const EVIL = [
  ...EVIL_VALUES,
  json(theirs),
  json([theirs]),
  `{"thread_id":${json(own)},"thread_id":${json(theirs)}}`,
  `{"checkpoint_id":"x","thread_id":${json(theirs)},"thread_id":${json(own)}}`,
  `{"configurable":{"thread_id":${json(own)},"thread_\\u0069d":${json(theirs)}}}`,
  `{"__proto__":{"thread_id":${json(theirs)}}}`,
  `{"configurable":{"__proto__":{"thread_id":${json(theirs)}}}}`,
  `{"constructor":{"prototype":{"thread_id":${json(theirs)}}}}`,
  `{"run_id":${json(runOf(theirs))}}`,
  '{"outcome":"refused","reason":"x","code":"y"}',
  '{"outcome":"refused"}',
]

const parts = fc.record({
  values: fc.record(values),
  chosen: fc.array(fc.nat({ max: 30 }), { maxLength: 4 }),
  changes: membersEdits(fc.constantFrom(...KEYS), fc.oneof(fc.constantFrom(...EVIL), text(anyId)), 5),
  texts,
})

/** Writes a body with some of these keys: a character for each byte. */
export type WriteBody = (keys: readonly string[]) => string

export const body: fc.Arbitrary<WriteBody> = parts.map(({ values: of, chosen, changes, texts: edits }): WriteBody => (keys) => {
  const named = new Set([
    ...keys.filter((key) => REQUIRED.has(key)),
    ...chosen.flatMap((at) => keys[at % (keys.length || 1)] ?? []),
  ])
  const members = [...named].map((key): Member => [json(key), of[key] ?? '"x"'])
  return edits.reduce((all, change) => change(all), utf8(jsonText(members, changes)))
})

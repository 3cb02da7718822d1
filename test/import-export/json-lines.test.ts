/** A JSON object in each line: a line that is none is a fault of that line alone. */
import { test } from 'tap'
import { faults, read } from './sources.ts'

const line = (more: object): string => JSON.stringify({ thread: 't', user: 'corp:a', ...more })

void test('lines are told apart by newlines alone, and counted from 1 with the empty ones', async (t) => {
  const text = `\ufeff${line({ thread: 'a', name: 'x\u2028y' })}\r\n\n  \n${line({ thread: 'b' })}`
  t.match(await read(text, 'jsonl'), [
    { line: 1, threadId: 'a', facts: { name: 'x\u2028y' } },
    { line: 4, threadId: 'b' },
  ])
})

void test('an empty file has no lines', async (t) => {
  t.same(await read('', 'jsonl'), [])
})

for (const [name, text, reason] of [
  ['a list', '[]', /^1: it is not a JSON object/],
  ['half an object', '{"thread":"t"', /^1: it is not a JSON object/],
  ['a key twice', '{"thread":"t","user":"corp:a","user":"corp:b"}', /^1: it has a key twice/],
  ['a key twice, once with an escape', '{"thread":"t","user":"corp:a","\\u0075ser":"corp:b"}', /^1: it has a key twice/],
  ['a key that is nearly one', line({ usr: 1 }), /^1: the format has no key "usr": did you mean "user"\?/],
  ['a line of 70000 bytes', line({ name: 'x'.repeat(70_000) }), /^1: it is longer than 64KiB/],
  ['no UTF-8', Buffer.concat([Buffer.from('{"thread":"'), Buffer.from([0xff]), Buffer.from('"}')]), /^1: it is not UTF-8/],
] as const) {
  void test(`${name} is a fault, and the next line is read`, async (t) => {
    const whole = Buffer.concat([Buffer.from(text), Buffer.from(`\n${line({ thread: 'next' })}\n`)])
    const [fault, next, ...more] = await read(whole, 'jsonl')
    t.match((await faults(whole, 'jsonl'))[0], reason)
    t.match(fault, { kind: 'fault', line: 1 })
    t.match(next, { kind: 'row', line: 2, threadId: 'next' })
    t.same(more, [])
  })
}

/** Bodies on their way: nothing is lost or doubled, whenever a reader comes and however little it takes at once. */
import { PassThrough, Readable } from 'node:stream'
import { test } from 'tap'
import { ArrivingBody, collect, streamedBody, type BodyReader } from '../../src/http/upstream/answer-body.ts'

/** A body, with what was asked of its source. */
function arriving() {
  const asked: string[] = []
  const body = new ArrivingBody({
    pause: () => asked.push('pause'),
    resume: () => asked.push('resume'),
    abort: () => asked.push('abort'),
  })
  return { body, asked }
}

/** A reader that takes so many pieces before it is full, and writes down what it is told. */
function reader(most = Infinity): BodyReader & { readonly told: string[] } {
  const told: string[] = []
  return {
    told,
    data: (chunk) => told.push(String(chunk)) < most,
    end: (last) => told.push(...(last === undefined ? [] : [String(last)]), 'end'),
    broken: (error) => told.push(`broken: ${error.message}`),
  }
}

const bytes = (text: string): Buffer => Buffer.from(text)

void test('what has come before there is a reader is handed on first, and the end with it', (t) => {
  const { body, asked } = arriving()
  body.push(bytes('a'))
  body.push(bytes('b'))
  body.finish()
  const late = reader()
  body.read(late)
  t.same(late.told, ['a', 'b', 'end'])
  t.same(asked, [])
  t.end()
})

void test('without a reader it comes up to a bound, and goes on when there is one', (t) => {
  const { body, asked } = arriving()
  body.push(Buffer.alloc(64 * 1024))
  t.same(asked, [])
  body.push(bytes('more'))
  body.push(bytes('what was on its way'))
  t.same(asked, ['pause'])
  const late = reader()
  body.read(late)
  t.same(late.told.slice(1), ['more', 'what was on its way'])
  t.same(asked, ['pause', 'resume'])
  t.end()
})

void test('a reader who is full is handed nothing until it goes on, and then everything in its order', (t) => {
  const { body, asked } = arriving()
  const slow = reader(1)
  body.read(slow)
  body.push(bytes('a'))
  t.same(asked, ['pause'])
  // The source may have handed out more before it could stop.
  body.push(bytes('b'))
  body.push(bytes('c'))
  body.finish()
  t.same(slow.told, ['a'])
  body.resume()
  t.same(slow.told, ['a', 'b'])
  body.resume()
  t.same(slow.told, ['a', 'b', 'c', 'end'])
  t.same(asked, ['pause'], 'there is nothing more to ask for')
  t.end()
})

void test('a reader who goes on asks for more, once', (t) => {
  const { body, asked } = arriving()
  const slow = reader(1)
  body.read(slow)
  body.push(bytes('a'))
  body.resume()
  body.resume()
  t.same(asked, ['pause', 'resume'])
  body.push(bytes('b'))
  t.same(slow.told, ['a', 'b'])
  t.same(asked, ['pause', 'resume', 'pause'])
  t.end()
})

void test('an end reaches a reader who is full, because nothing is left to be handed on', (t) => {
  const { body } = arriving()
  const slow = reader(1)
  body.read(slow)
  body.push(bytes('a'))
  body.finish()
  t.same(slow.told, ['a', 'end'])
  t.end()
})

void test('one that broke off says so at once, to a reader who comes later too, and hands on nothing more', (t) => {
  const { body, asked } = arriving()
  body.push(bytes('a'))
  body.fail(new Error('gone'))
  const late = reader()
  body.read(late)
  t.same(late.told, ['broken: gone'])
  body.push(bytes('b'))
  body.finish()
  body.resume()
  t.same(late.told, ['broken: gone'])
  body.destroy()
  t.same(asked, [], 'it is over already')
  t.end()
})

void test('one that is not wanted any more is given up once, and its reader hears nothing', (t) => {
  const { body, asked } = arriving()
  const one = reader()
  body.read(one)
  body.destroy()
  body.destroy()
  body.push(bytes('a'))
  body.fail(new Error('aborted'))
  body.finish()
  t.same(one.told, [])
  t.same(asked, ['abort'])
  t.end()
})

void test('one that was given up while it was held back is not asked for more by a reader who comes late', (t) => {
  const { body, asked } = arriving()
  body.push(Buffer.alloc(64 * 1024 + 1))
  body.destroy()
  const late = reader()
  body.read(late)
  t.same(asked, ['pause', 'abort'])
  t.same(late.told, [])
  t.end()
})

void test('a whole body is read within its bound', async (t) => {
  t.same(await collect(streamedBody(Readable.from([bytes('ab'), bytes('cd')])), 4), bytes('abcd'))
  const long = new PassThrough()
  long.write('abcde')
  t.equal(await collect(streamedBody(long), 4), 'too-large')
  t.ok(long.destroyed)
  for (const error of [new Error('gone'), undefined]) {
    const broken = new PassThrough()
    const reading = collect(streamedBody(broken), 4)
    broken.write('ab')
    broken.destroy(error)
    t.equal(await reading, 'broke-off')
  }
})

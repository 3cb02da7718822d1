/** What an answer that is read whole holds of the memory for answers, from its first bytes until its caller has it. */
import { test } from 'tap'
import { AnswerMemory } from '../../src/http/lists/answer-memory.ts'
import { readingCost, makeBudget } from '../../src/http/pipeline/request-body.ts'

const MIB = 2 ** 20

void test('a list holds what its longest page takes to read, then what was written of it', (t) => {
  const most = readingCost(4 * MIB, 0)
  const budget = makeBudget(most)
  const left = (): number => {
    for (let bytes = most; bytes >= 0; bytes -= 1024) {
      if (!budget.take(bytes)) continue
      budget.give(bytes)
      return bytes
    }
    return -1
  }
  const memory = new AnswerMemory(budget)
  t.ok(memory.reads(64 * 1024), 'a short one')
  t.equal(left(), most, 'is not worth counting')
  t.ok(memory.reads(MIB) && memory.reads(3 * MIB))
  t.equal(left(), readingCost(MIB, 0), 'the page as far as it has come')
  memory.keeps(3 * MIB)
  t.ok(memory.reads(MIB))
  t.equal(left(), most - 3 * MIB - readingCost(MIB, 0), 'a page, beside what was kept of the one before')
  t.equal(memory.lacked, false)
  t.equal(memory.reads(4 * MIB), false)
  t.equal(memory.lacked, true)
  t.equal(left(), most - 3 * MIB - readingCost(MIB, 0), 'what was refused is not held')
  memory.wrote(2 * MIB)
  t.equal(left(), most - 2 * MIB)
  memory.release()
  t.equal(left(), most)
  memory.release()
  t.equal(left(), most, 'once')
  t.end()
})

void test('what was written holds no more than reading it did: there is always room for it', (t) => {
  const budget = makeBudget(readingCost(MIB, 0))
  const memory = new AnswerMemory(budget)
  t.ok(memory.reads(MIB))
  memory.wrote(100 * MIB)
  t.equal(budget.take(1), false)
  memory.release()
  t.ok(budget.take(budget.most))
  t.end()
})

void test('what is read elsewhere is held as it is said, and then what was written', (t) => {
  const budget = makeBudget(MIB)
  const memory = new AnswerMemory(budget)
  t.ok(memory.holds(64 * 1024), 'a short one')
  t.ok(budget.take(MIB), 'is not worth counting')
  budget.give(MIB)
  t.ok(memory.holds(MIB - 100))
  t.equal(memory.holds(MIB + 1), false)
  t.equal(budget.take(101), false)
  memory.wrote(100_000)
  t.ok(budget.take(MIB - 100_000))
  t.equal(budget.take(1), false)
  budget.give(MIB - 100_000)
  memory.release()
  t.ok(budget.take(MIB))
  t.end()
})

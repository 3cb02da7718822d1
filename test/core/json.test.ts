import { test } from 'tap'
import { readJsonObject } from '../../src/core/json.ts'

const read = (text: string) => readJsonObject(Buffer.from(text))

void test('a JSON object is read', (t) => {
  t.same(read('{"a":[1,"x:y",{"b":null}]}'), { outcome: 'read', value: { a: [1, 'x:y', { b: null }] } })
  t.end()
})

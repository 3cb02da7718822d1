import { test } from 'tap'

void test('it rejects', async () => {
  void Promise.reject(new Error('rejected'))
  await new Promise(() => {})
})

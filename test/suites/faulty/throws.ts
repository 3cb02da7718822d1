import { test } from 'tap'

void test('it throws', async (t) => {
  await t.test('where nobody catches it', async () => {
    setTimeout(() => {
      throw new Error('thrown late')
    }, 1)
    await new Promise(() => {})
  })
})

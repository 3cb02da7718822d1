/** The commands of docs/how-to/operate/new-runtime-version.md, as printed. */
import { test } from 'tap'
import { ROOT } from '../../docs/markdown.ts'
import { runBlocks } from '../../docs/commands.ts'

void test('the comparison of a version prints what the page shows', async (t) => {
  await runBlocks(t, 'docs/how-to/operate/new-runtime-version.md', { folder: ROOT })
})

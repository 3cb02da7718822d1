/** The recorded contracts are what the installed versions say, and the newest one is asked where the registry answers. */
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { once } from 'node:events'
import { test } from 'tap'
import { TESTED_RUNTIMES } from '../../../src/core/route/runtime-version.ts'
import { askContract, folderOf, newestRelease } from '../../../testing/contract/installed.ts'
import { missingIn, unknownIn } from '../../../testing/contract/known.ts'
import { readRecorded } from '../../../testing/contract/recorded.ts'
import { ROOT } from '../../suites/suites.ts'

for (const version of TESTED_RUNTIMES) {
  void test(`${version} takes and gives what is recorded, all of which the gateway knows`, async (t) => {
    const folder = folderOf(version)
    if (folder === null) return t.fail(`${version} is not installed: node scripts/setup.mjs --tests --runtimes`)
    const contract = await askContract(folder)
    t.same(
      contract,
      readRecorded().find((one) => one.version === version),
    )
    t.same([missingIn(contract), unknownIn(contract)], [[], []])
  })
}

void test('the newest release of the registry, where that answers', { timeout: 300_000 }, async (t) => {
  const newest = await newestRelease()
  if (newest === null) {
    t.comment('the npm registry does not answer: the newest tested version was compared, and no newer one')
    return
  }
  const command = spawn(process.execPath, ['scripts/contract.ts', '--runtime', newest], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [output, faults] = await Promise.all([text(command.stdout), text(command.stderr), once(command, 'close')])
  t.equal(command.exitCode, 0, `${newest}: ${output}${faults}`)
  t.match(output, `@copilotkit/runtime ${newest}`)
})

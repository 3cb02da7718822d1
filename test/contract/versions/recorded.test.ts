/** The recorded contracts are what the installed versions say. */
import { test } from 'tap'
import { TESTED_RUNTIMES } from '../../../src/core/route/runtime-version.ts'
import { askContract, folderOf } from '../../../testing/contract/installed.ts'
import { missingIn, unknownIn } from '../../../testing/contract/known.ts'
import { readRecorded } from '../../../testing/contract/recorded.ts'

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

/** Where containers cannot run, the checks of the image, of pods and of the Compose file say why, and do not count as passed unless that is asked for. */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { makeFolder } from '../../testing/support/gateway.ts'
import { ROOT } from '../suites/suites.ts'

for (const script of ['container-check', 'pod-check', 'compose-check']) {
  void test(script, (t) => {
    const { folder, remove } = makeFolder()
    t.teardown(remove)
    // A machine that refuses namespaces.
    writeFileSync(join(folder, 'unshare'), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
    const run = (...args: readonly string[]) =>
      spawnSync(join(ROOT, `scripts/${script}.sh`), args, {
        encoding: 'utf8',
        env: { ...process.env, PATH: `${folder}:${process.env['PATH']}` },
      })
    const reason =
      process.getuid?.() === 0 ? 'this machine does not allow new mount, process and network namespaces' : 'only root'
    const skipped = run('--or-skip')
    t.match(skipped, { status: 0, stderr: '' })
    t.match(skipped.stdout, `${script}: SKIPPED, nothing was checked: ${reason}`)
    t.match(run(), { status: 2, stdout: '', stderr: `${script}: ${reason}` })
    t.match(run('--all'), { status: 2, stderr: `${script}: unknown option --all; see --help` })
    t.match(run('--work'), { status: 2, stderr: `${script}: --work needs a value; see --help` })
    t.match(run('--help'), { status: 0, stdout: `scripts/${script}.sh` })
    t.end()
  })
}

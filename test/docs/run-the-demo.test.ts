/** The tutorial "Run the demo", and the commands that the demo itself prints. */
import { execFile } from 'node:child_process'
import { copyFileSync, existsSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { test } from 'tap'
import { makeFolder } from '../../testing/support/gateway.ts'
import { until } from '../../testing/support/until.ts'
import { runBlocks } from './commands.ts'
import { ROOT } from './markdown.ts'

const VARIABLES = ['GATEWAY', 'RUNTIME', 'ISSUER', 'ALICE', 'BOB']

void test('run the demo', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  for (const name of ['examples', 'node_modules', 'policies', 'scripts', 'src']) symlinkSync(join(ROOT, name), join(folder, name))
  copyFileSync(join(ROOT, 'package.json'), join(folder, 'package.json'))
  const { ran } = await runBlocks(t, 'docs/tutorials/run-the-demo.md', {
    folder,
    servers: [[/^npm run demo/, /Press Ctrl-C/]],
    after: async ({ code }, { env, ran: soFar }) => {
      if (code !== 'npm run demo\n') return
      const output = soFar[0]?.output ?? ''
      // Runs before the harness kills the demo, which would leave its gateway running.
      t.teardown(() => stopGateway(output))
      const [lines, calls] = commandsOf(output)
      const printed = await bash(
        `${lines}\n(\n${calls}\n)\necho\nprintf '%s\\n' ${VARIABLES.map((name) => `"$${name}"`).join(' ')}`,
      )
      const answers = printed
        .split('\n')
        .slice(0, -VARIABLES.length - 1)
        .join('\n')
      t.match(answers, 'RUN_FINISHED')
      t.match(answers, /HTTP\/1\.1 403 [^]*not-owner[^]*HTTP\/1\.1 200 [^]*"content":"Hello"/)
      const values = printed.split('\n').slice(-VARIABLES.length - 1)
      for (const [at, name] of VARIABLES.entries()) env[name] = values[at] ?? ''
    },
  })
  t.match(ran[1]?.output, 'RUN_FINISHED')
})

/** The lines that set variables, and the requests, in what the demo prints at its end. */
function commandsOf(output: string): readonly [string, string] {
  const variables = /^GATEWAY=[^]*?\n(?=\n)/m.exec(output)?.[0] ?? ''
  const requests = /^curl [^]*?\n(?=\n)/m.exec(output)?.[0] ?? ''
  return [variables, requests]
}

/** Stops the gateway of the demo, and waits until the demo has removed its files. */
async function stopGateway(output: string): Promise<void> {
  const pid = Number(/^gateway process +(\d+)$/m.exec(output)?.[1])
  const config = /^configuration +(\S+)$/m.exec(output)?.[1] ?? ''
  process.kill(pid, 'SIGTERM')
  await until(() => !existsSync(dirname(config)))
}

/** Runs commands in the clone, as in another terminal. */
async function bash(commands: string): Promise<string> {
  const { stdout } = await promisify(execFile)('bash', ['-ec', commands], { cwd: ROOT })
  return stdout
}

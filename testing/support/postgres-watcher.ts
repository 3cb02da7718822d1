/**
 * A process of its own beside every PostgreSQL server of the tests. It waits for the end of its standard input, which comes
 * when a test is over or its process dies, however it dies. Then it ends the server and removes its folder.
 *
 * Arguments: the server's `cluster_name`, its folder.
 */
import { rmSync } from 'node:fs'
import { processesOf, signal } from './postgres-processes.ts'
import { until } from './until.ts'

/** Milliseconds that the server has for ending by itself. */
const PATIENCE = 5000

const [name = '', folder = ''] = process.argv.slice(2)

async function end(): Promise<void> {
  const pids = processesOf(name)
  // At once and without a checkpoint; unlike SIGKILL it gives shared memory back. A process that is stopped has to go on for it.
  signal(pids, 'SIGQUIT')
  signal(pids, 'SIGCONT')
  const deadline = Date.now() + PATIENCE
  await until(() => {
    const left = processesOf(name)
    if (Date.now() > deadline) signal(left, 'SIGKILL')
    return left.length === 0
  })
  rmSync(folder, { recursive: true, force: true })
}

process.stdin.resume().once('close', () => void end())

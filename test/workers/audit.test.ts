/** The audit of all workers is one: whole lines, none twice, none missing, over every rotation of the file. */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, readdirSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { until } from '../../testing/support/until.ts'
import { startScene } from './scene.ts'

const REQUESTS = 150
const ROTATIONS = 5

/** Renames the file, and sends SIGHUP. */
type Rotate = (file: string, pid: number) => void

const byHand: Rotate = (file, pid) => {
  const turn = readdirSync(join(file, '..')).length
  renameSync(file, `${file}.${turn}`)
  process.kill(pid, 'SIGHUP')
}

/** As docs/how-to/operate/audit.md has it. */
const byLogrotate: Rotate = (file, pid) => {
  const rules = join(file, '..', '..', 'logrotate.conf')
  writeFileSync(
    rules,
    `${file} {
  daily
  maxsize 100M
  rotate 10
  missingok
  notifempty
  nocreate
  compress
  delaycompress
  postrotate
    kill -HUP ${pid}
  endscript
}
`,
    { mode: 0o644 },
  )
  execFileSync('logrotate', ['--force', '--state', `${rules}.state`, rules])
}

const hasLogrotate = spawnSync('logrotate', ['--version']).error === undefined

for (const [name, to, workers, rotate] of [
  ['stdout', 'stdout', 2, null],
  ['file, renamed', 'file', 2, byHand],
  ['file of one process, renamed', 'file', 1, byHand],
  ['file, logrotate', 'file', 2, byLogrotate],
] as const) {
  const skip = rotate === byLogrotate && !hasLogrotate ? 'logrotate is not installed' : false
  void test(`to ${name}`, { skip }, async (t) => {
    const scene = await startScene(t, { workers, config: { audit: { to, file: './audit/audit.jsonl' } } })
    const folder = join(scene.folder, 'audit')
    const file = join(folder, 'audit.jsonl')
    const ways = [...(await scene.workers()).values()]
    const alice = scene.sign('alice')
    const asked: string[] = []
    let isRotated = rotate === null
    const rotating = async (): Promise<void> => {
      for (let turn = 0; rotate !== null && turn < ROTATIONS; turn += 1) {
        const before = asked.length
        // logrotate leaves an empty file where it is.
        await until(() => asked.length > before + 10 && statSync(file).size > 0)
        rotate(file, scene.pid)
        await until(() => existsSync(file))
      }
      isRotated = true
    }
    await Promise.all([
      rotating(),
      ...ways.map(async (way) => {
        for (let at = 0; at < REQUESTS || !isRotated; at += 1)
          asked.push((await way.ask(alice, '/info')).headers.get('x-request-id')!)
      }),
    ])
    t.equal(await scene.figure('threadwarden_audit_lost_total '), 0)
    await scene.end('SIGTERM')
    const files = rotate === null ? [] : readdirSync(folder)
    const written = files.flatMap((each) => textOf(join(folder, each)).split('\n').slice(0, -1))
    const lines = rotate === null ? scene.lines : written.map((line) => JSON.parse(line) as { readonly requestId: string })
    const ids = lines.filter((line) => 'audit' in line).map(({ requestId }) => requestId)
    t.equal(new Set(ids).size, ids.length)
    t.same(
      asked.filter((id) => !ids.includes(id)),
      [],
    )
    if (rotate === null) return
    t.equal(files.length, ROTATIONS + 1, files.join(' '))
    t.equal(scene.lines.filter(({ msg }) => msg === 'the audit file was reopened').length, ROTATIONS)
  })
}

function textOf(file: string): string {
  return file.endsWith('.gz') ? execFileSync('zcat', [file], { encoding: 'utf8' }) : readFileSync(file, 'utf8')
}

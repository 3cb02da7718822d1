/** The audit of all workers is one: whole lines, none twice, none missing, in files that are put aside as always. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { startScene } from './scene.ts'

const REQUESTS = 150

for (const to of ['file', 'stdout'] as const) {
  void test(`to ${to}`, async (t) => {
    const scene = await startScene(t, { config: { audit: { to, file: './audit/audit.jsonl', maxSize: '64KiB', keep: 50 } } })
    const workers = [...(await scene.workers()).values()]
    const alice = scene.sign('alice')
    const asked: string[] = []
    await Promise.all(
      workers.map(async (worker) => {
        for (let at = 0; at < REQUESTS; at += 1) asked.push((await worker.ask(alice, '/info')).headers.get('x-request-id')!)
      }),
    )
    t.equal(await scene.figure('threadwarden_audit_lost_total '), 0)
    await scene.end('SIGTERM')
    const folder = join(scene.folder, 'audit')
    const files = to === 'file' ? readdirSync(folder) : []
    const written = files.flatMap((file) =>
      readFileSync(join(folder, file), 'utf8')
        .split('\n')
        .filter((line) => line !== ''),
    )
    const lines = to === 'file' ? written.map((line) => JSON.parse(line) as { readonly requestId: string }) : scene.lines
    const ids = lines.filter((line) => 'audit' in line).map(({ requestId }) => requestId)
    t.equal(new Set(ids).size, ids.length)
    t.same(
      asked.filter((id) => !ids.includes(id)),
      [],
    )
    if (to === 'file') t.ok(files.length > 1, files.join(' '))
  })
}

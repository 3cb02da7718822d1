/** `threadwarden validate --strict` on the configuration of a manifest, with its files in a folder of the test. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Test } from 'tap'
import { SERVER } from '../../testing/support/certificates.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { run } from '../../testing/support/program.ts'
import { configurationOf } from './findings.ts'
import { workloadsOf, type KubernetesObject } from './objects.ts'

/** @param warning the only one that there is */
export async function validateConfigurations(
  t: Test,
  from: string,
  objects: readonly KubernetesObject[],
  warning?: RegExp,
): Promise<void> {
  for (const workload of workloadsOf(objects).filter(({ gateway }) => gateway !== undefined)) {
    const text = configurationOf(objects, workload) ?? ''
    const { folder, remove } = makeFolder()
    t.teardown(remove)
    const here = text.replaceAll('/etc/threadwarden/', `${folder}/`).replaceAll('sqlite:/data/', `sqlite:${folder}/`)
    const beside = objects.flatMap(({ kind, data }) => (kind === 'ConfigMap' ? Object.entries(data ?? {}) : []))
    for (const [name, content] of beside) writeFileSync(join(folder, name), content)
    for (const [, path = ''] of here.matchAll(/\$\{file:([^}]+)\}/g)) {
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, 'a-secret-of-more-than-thirty-two-characters')
    }
    if (here.includes(`${folder}/tls/`)) {
      mkdirSync(join(folder, 'tls'))
      writeFileSync(join(folder, 'tls/tls.crt'), SERVER.cert)
      writeFileSync(join(folder, 'tls/tls.key'), SERVER.key)
    }
    writeFileSync(join(folder, 'threadwarden.yaml'), here)
    const { code, stderr } = await run(t, ['validate', '--strict', '--config', join(folder, 'threadwarden.yaml')])
    if (warning === undefined) t.same({ code, stderr }, { code: 0, stderr: '' }, from)
    else t.match({ code, warnings: stderr.trim().split('\n') }, { code: 1, warnings: [warning] }, from)
  }
}

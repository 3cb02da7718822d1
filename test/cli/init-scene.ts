/** `threadwarden init` in a folder of its own, and what it wrote there. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { parse } from 'yaml'
import { startIssuer } from '../../examples/issuer.ts'
import { clearThreads } from '../../examples/runtime.ts'
import type { Ended } from '../../testing/support/decided.ts'
import { freePort } from '../../testing/support/free-port.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { startKeyServer, type KeyServer } from '../../testing/support/key-server.ts'
import { jwkOf, PAIRS } from '../../testing/support/signing.ts'
import { start, type Mode, type RuntimeName } from '../contract/runtimes.ts'
import { hush } from '../doctor/examination.ts'
import { run } from './in-process.ts'

export interface InitScene {
  readonly folder: string
  /** The file that it writes unless an argument says otherwise. */
  readonly file: string
  readonly init: (...args: readonly string[]) => Promise<Ended>
  readonly isWritten: () => boolean
  readonly text: () => string
  /** The configuration as data. */
  readonly written: () => Written
}

export interface Written {
  readonly upstream?: Readonly<Record<string, unknown>>
  readonly agents?: Readonly<Record<string, unknown>>
  readonly authentication: { readonly issuers: Readonly<Record<string, Readonly<Record<string, unknown>>>> }
  readonly ownership: Readonly<Record<string, unknown>>
}

export function initScene(t: Test): InitScene {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'threadwarden.yaml')
  const text = (): string => readFileSync(file, 'utf8')
  return {
    folder,
    file,
    init: (...args) => run(t, ['init', ...(args.includes('--out') ? [] : ['--out', file]), ...args]),
    isWritten: () => existsSync(file),
    text,
    written: () => parse(text()) as Written,
  }
}

/** An issuer with one RSA key. */
export async function plainIssuer(t: Test): Promise<KeyServer> {
  const issuer = await startKeyServer(t)
  issuer.keys(jwkOf(PAIRS.rsa.publicKey, { kid: 'k1' }))
  return issuer
}

/**
 * Whether `validate --strict` and `doctor` accept the file, on ports that no other gateway of this machine uses.
 * @param faults of the upstream itself, by the names of their checks: no configuration removes them
 */
export async function isAccepted(t: Test, { file, text }: InitScene, faults: readonly string[] = []): Promise<void> {
  writeFileSync(
    file,
    text()
      .replace('8080', String(await freePort()))
      .replace('8081', String(await freePort())),
  )
  t.match(await run(t, ['validate', '--strict', '--config', file]), { code: 0, stderr: '' })
  const { code, stdout } = await run(t, ['doctor', '--json', '--config', file])
  const { findings } = JSON.parse(stdout) as { readonly findings: readonly { readonly check: string; readonly level: string }[] }
  t.same(
    findings.filter(({ level }) => level === 'problem' || level === 'warning').map(({ check }) => check),
    faults,
  )
  t.equal(code, faults.length === 0 ? 0 : 1)
}

/** Whether `init` recognises a runtime with a real issuer, and writes what is accepted. */
export async function recognises(t: Test, name: RuntimeName, mode: Mode, faults: readonly string[] = []): Promise<void> {
  hush(t)
  clearThreads()
  const scene = initScene(t)
  const issuer = await startIssuer()
  t.teardown(() => issuer.close())
  const runtime = await start(t, name, mode)
  const { code, stdout, stderr } = await scene.init('--upstream', `${runtime.url}${runtime.basePath}`, '--issuer', issuer.issuer)
  t.match({ code, stderr }, { code: 0, stderr: '' })
  t.match(stdout, `is a ${mode} runtime of version ${name.slice(0, 4)}.`)
  t.match(stdout, `${issuer.issuer} has 1 key, for RS256`)
  t.match(stdout, /Assumed, please check:\n(?:.*\n)*  tokens have agent-chat in aud/)
  t.match(scene.written(), {
    upstream: { url: runtime.url, basePath: runtime.basePath },
    authentication: { issuers: { corp: { issuer: issuer.issuer, audiences: ['agent-chat'], algorithms: ['RS256'] } } },
    // 1.54 does not serve histories.
    ownership: { unknownThread: name.startsWith('1.54') ? 'claim' : 'verify' },
  })
  await isAccepted(t, scene, faults)
}

/** The release command, run for real in a clone with a tag of its own. scripts/container-check.sh checks the image. */
import { execFileSync, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { list } from 'tar'
import { makeFolder } from '../../testing/support/gateway.ts'
import { ROOT } from '../suites/suites.ts'

const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { readonly version: string }
const TAG = `v${version}`

/** A clone of what is committed here, with a dated section in the changelog, tagged. */
function makeClone(t: Test): string {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const clone = join(folder, 'clone')
  const author = ['-c', 'user.name=a', '-c', 'user.email=a@example.com', '-c', 'tag.gpgSign=false', '-c', 'commit.gpgSign=false']
  const git = (...args: readonly string[]): void =>
    void execFileSync('git', ['-C', clone, ...author, ...args], { stdio: 'ignore' })
  execFileSync('git', ['clone', '--quiet', '--no-tags', ROOT, clone])
  const changelog = readFileSync(join(clone, 'CHANGELOG.md'), 'utf8')
  writeFileSync(join(clone, 'CHANGELOG.md'), changelog.replace(/^## \[.*$/m, `## [${version}] - 2026-11-25`))
  git('commit', '--quiet', '--allow-empty', '--all', '--message', TAG)
  git('tag', TAG)
  symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'))
  // Git ignores node_modules as a folder, not as a link.
  writeFileSync(join(clone, '.git/info/exclude'), 'node_modules\n')
  return clone
}

interface Ran {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

function release(clone: string, ...args: readonly string[]): Ran {
  return spawnSync(process.execPath, [join(clone, 'scripts/release.ts'), ...args], { cwd: clone, encoding: 'utf8' })
}

const PARTS = ['npm', 'chart', 'sbom', 'notes'].flatMap((part) => ['--only', part])

void test('the same tag gives the same files, which are what they say', async (t) => {
  const clone = makeClone(t)
  const [first, second] = [join(clone, '../first'), join(clone, '../second')]
  for (const out of [first, second]) t.match(release(clone, TAG, '--out', out, ...PARTS), { status: 0 })
  const names = ['chart.tgz', 'notes.md', 'npm.tgz', 'sbom.cdx.json'].map((suffix) => `threadwarden-${version}.${suffix}`)
  t.same(readdirSync(first).toSorted(), ['SHA256SUMS', ...names])
  t.equal(readFileSync(join(second, 'SHA256SUMS'), 'utf8'), readFileSync(join(first, 'SHA256SUMS'), 'utf8'))
  t.equal(spawnSync('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: first }).status, 0)

  const paths = async (suffix: string): Promise<readonly string[]> => {
    const found: string[] = []
    await list({ file: join(first, `threadwarden-${version}.${suffix}`), onReadEntry: ({ path }) => found.push(path) })
    return found
  }
  const program = await paths('npm.tgz')
  for (const file of ['package.json', 'dist/cli.js', 'policies/default.yaml']) t.ok(program.includes(`package/${file}`), file)
  t.equal((await paths('chart.tgz'))[0], 'threadwarden/Chart.yaml')
  const sbom = JSON.parse(readFileSync(join(first, `threadwarden-${version}.sbom.cdx.json`), 'utf8')) as {
    readonly metadata: { readonly component: { readonly version: string } }
    readonly components: readonly { readonly name: string; readonly hashes: readonly object[] }[]
  }
  t.equal(sbom.metadata.component.version, version)
  t.ok(sbom.components.every(({ hashes }) => hashes.length === 1))
  const dependencies = Object.keys(
    (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { readonly dependencies: object }).dependencies,
  )
  const listed = sbom.components.map((component) => component.name)
  for (const name of dependencies) t.ok(listed.includes(name.replace(/^@[^/]+\//, '')), name)
  for (const name of ['typescript', 'tap', 'node']) t.notOk(listed.includes(name), name)
})

void test('what is refused makes no files', (t) => {
  const clone = makeClone(t)
  const out = join(clone, '../out')
  const dry = release(clone, TAG, '--out', out, '--dry-run')
  t.match(dry, { status: 0 })
  t.match(dry.stdout, `threadwarden-${version}.image.oci.tar`)
  writeFileSync(join(clone, 'README.md'), '')
  const refused = release(clone, TAG, '--out', out)
  t.match(refused, { status: 1, stderr: /the worktree has changes/ })
  t.match(release(clone, TAG, '--out', clone, '--dry-run'), { status: 1, stderr: /is not empty/ })
  for (const wrong of [[], [TAG, TAG], [TAG, '--only', 'all'], [TAG, '--force']]) {
    t.match(release(clone, ...wrong), { status: 2, stderr: /npm run release/ }, wrong.join(' '))
  }
  t.notOk(readdirSync(join(clone, '..')).includes('out'))
  t.end()
})

void test('an SBOM that breaks the schema is found', (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const program = join(ROOT, 'scripts/image/sbom.ts')
  const file = join(folder, 'sbom.json')
  execFileSync(process.execPath, [program, '--out', file])
  const check = (): number | null => spawnSync(process.execPath, [program, '--check', file]).status
  t.equal(check(), 0)
  writeFileSync(file, readFileSync(file, 'utf8').replace('"library"', '"libary"'))
  t.equal(check(), 1)
  t.end()
})

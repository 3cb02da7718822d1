/** What is in the npm package: all that the program reads, and nothing that only the repository needs. */
import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { ROOT } from '../docs/markdown.ts'

interface Package {
  readonly name: string
  readonly private?: boolean
  readonly files: readonly string[]
  readonly bin: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>
  readonly scripts: Readonly<Record<string, string>>
  readonly publishConfig: object
  readonly dependencies: Readonly<Record<string, string>>
}

const PACKAGE = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Package

/** As npm would pack it now, from what `npm run build` made. */
function packed(): readonly string[] {
  // prepack builds, and npm test has done that.
  const options = ['pack', '--dry-run', '--json', '--ignore-scripts', '--silent']
  const { stdout } = spawnSync('npm', options, { cwd: ROOT, encoding: 'utf8' })
  const [{ files }] = JSON.parse(stdout) as [{ files: readonly { readonly path: string }[] }]
  return files.map(({ path }) => path)
}

const PACKED = packed()

void test('the package has what the program reads and what applications import', (t) => {
  const needed = [
    ...['LICENSE', 'README.md', 'CHANGELOG.md', 'package.json', PACKAGE.bin['threadwarden'] ?? ''],
    ...globSync(['policies/*.yaml', 'policies/*.schema.json', 'config/*'], { cwd: ROOT }),
    ...globSync('src/**/*.{ts,tsx}', { cwd: ROOT }).map((file) => file.replace(/^src\/(.*)\.tsx?$/, 'dist/$1.js')),
    ...globSync('src/console/*.{css,svg}', { cwd: ROOT }).map((file) => file.replace(/^src/, 'dist')),
  ]
  for (const file of needed) t.ok(PACKED.includes(file), file)
  for (const target of Object.values(PACKAGE.exports).flatMap((one) => (typeof one === 'string' ? [one] : Object.values(one)))) {
    const file = target.replace(/^\.\//, '')
    t.ok(
      PACKED.some((path) => (file.endsWith('*') ? path.startsWith(file.slice(0, -1)) : path === file)),
      target,
    )
  }
  t.end()
})

void test('the package has nothing else', (t) => {
  const allowed =
    /^(?:LICENSE|README\.md|CHANGELOG\.md|package\.json|config\/threadwarden\.(?:yaml|schema\.json)|policies\/[\w-]+(?:\.yaml|\.schema\.json)|dist\/.+\.js|dist\/console\/[\w-]+\.(?:css|svg)|dist\/(?:jwt|sdk)\/.+\.d\.ts)$/
  t.same(
    PACKED.filter((path) => !allowed.test(path)),
    [],
  )
  t.same(
    PACKED.filter((path) => /(?:^|\/)(?:tests?|testing|examples|scripts)\/|\.map$|\.test\.|\.db$|\.env|\.pem$/.test(path)),
    [],
  )
  for (const path of PACKED.filter((one) => one.endsWith('.js'))) {
    const text = readFileSync(join(ROOT, path), 'utf8')
    if (text.includes('sourceMappingURL')) t.fail(`${path} names a source map that is not in the package`)
  }
  t.end()
})

void test('nothing runs when it is installed, and nothing publishes it by accident', (t) => {
  t.same(
    Object.keys(PACKAGE.scripts).filter((name) => /^(?:pre|post)?(?:install|uninstall|prepare)$/.test(name)),
    [],
  )
  t.notOk('private' in PACKAGE)
  t.match(PACKAGE.publishConfig, { access: 'public', provenance: true })
  t.match(PACKAGE.scripts['prepack'], /rmSync\('dist'.* && npm run --silent build$/)
  for (const [name, version] of Object.entries(PACKAGE.dependencies)) t.match(version, /^\d+\.\d+\.\d+$/, name)
  t.end()
})

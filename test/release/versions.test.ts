/** The version is the same in every file that names it, and so are the versions of the packages that build the image. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { latestSection, versionsIn } from '../../testing/release/versions.ts'
import { ROOT } from '../suites/suites.ts'

const read = (file: string): unknown => JSON.parse(readFileSync(join(ROOT, file), 'utf8'))

void test('every file names one version', (t) => {
  const { version } = read('package.json') as { readonly version: string }
  const named = versionsIn(ROOT)
  // After a release, changes are collected below "Unreleased".
  const others = named.filter((one) => one.version !== version && one.version !== 'Unreleased')
  t.same(others, [])
  for (const file of ['package-lock.json', 'CHANGELOG.md', 'deploy/helm', 'deploy/kubernetes']) {
    t.ok(
      named.some(({ where }) => where.startsWith(file)),
      file,
    )
  }
  t.end()
})

void test('the image is built with the compiler and the types that the checks use', (t) => {
  const image = read('scripts/image/package.json') as { readonly dependencies: Readonly<Record<string, string>> }
  const checks = read('testing/package.json') as { readonly devDependencies: Readonly<Record<string, string>> }
  const lock = read('package-lock.json') as { readonly packages: Readonly<Record<string, { readonly version?: string }>> }
  const shared = Object.entries(image.dependencies).filter(([name]) => /^(?:typescript$|@types\/)/.test(name))
  t.ok(shared.length > 1)
  for (const [name, version] of shared) t.equal(version, checks.devDependencies[name], name)
  // The validator of the SBOM uses these packages of the gateway in another place.
  for (const name of ['ajv', 'ajv-formats'])
    t.equal(image.dependencies[name], lock.packages[`node_modules/${name}`]?.version, name)
  t.end()
})

void test('the latest section of a changelog', (t) => {
  const section = (text: string) => latestSection(`# Changelog\n\nWords.\n\n${text}`)
  t.same(section('## [2.0.0] - 2026-01-02\n\n### Added\n\n- A.\n\n## [1.0.0] - 2025-01-02\n\n- B.\n'), {
    version: '2.0.0',
    date: '2026-01-02',
    text: '### Added\n\n- A.',
  })
  t.same(section('## [Unreleased]\n\n- A.\n'), { version: 'Unreleased', date: '', text: '- A.' })
  t.equal(section('## Notes\n'), undefined)
  t.equal(section(''), undefined)
  t.end()
})

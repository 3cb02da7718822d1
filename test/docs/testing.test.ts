/** docs/contributing/testing.md tells which suite runs where, and which tests sleep; no test file is left out. */
import { globSync, readdirSync, readFileSync } from 'node:fs'
import { test } from 'tap'
import { LONG_SUITES, longFiles, pairFiles, quickFiles, ROOT } from '../suites/suites.ts'

const [, TABLE = '', SLEEPS = ''] = readFileSync(`${ROOT}/docs/contributing/testing.md`, 'utf8').split(/\n## (?:Suites|Sleeps)\n/)
const ALL = globSync(['test/**/*.test.ts', 'test/**/*.browser.ts'], { cwd: ROOT }).toSorted()

void test('the table of suites is that of the code', (t) => {
  const rows = [...TABLE.matchAll(/^\| `([a-z ]+)` \| (.*?) \| (.*?) \|$/gm)].map(([, name, files, sample]) => [
    name,
    files,
    sample,
  ])
  const code = (globs: readonly string[]): string => globs.map((glob) => `\`${glob}\``).join(', ') || 'none'
  t.same(
    rows,
    LONG_SUITES.map(({ name, files, sample }) => [name, code(files), code(sample)]),
  )
  t.end()
})

void test('every test file runs in npm test or in npm run test:all, and in one of them', (t) => {
  t.same([...quickFiles(), ...LONG_SUITES.flatMap(longFiles)].toSorted(), ALL)
  t.end()
})

void test('a sample is of its suite, and each glob finds files', (t) => {
  for (const { name, files, sample } of LONG_SUITES) {
    const found = globSync([...files], { cwd: ROOT })
    for (const file of sample) t.ok(found.includes(file), `${name}: ${file}`)
    for (const glob of files) t.not(globSync(glob, { cwd: ROOT }).length, 0, `${name}: ${glob}`)
  }
  t.not(pairFiles().length, 0)
  t.end()
})

void test('the table of sleeps names those that are longer than 100 ms', (t) => {
  const sleeps = /\b(?:sleep|pause)\(([\d_]+)\)|setTimeout\((?:resolve|\(\) => [^\n]*\.resume\(\)), ([\d_]+)\)/g
  const found = ALL.flatMap((file) =>
    [...readFileSync(`${ROOT}/${file}`, 'utf8').matchAll(sleeps)]
      .map(([, asked, timed]) => Number((asked ?? timed)?.replaceAll('_', '')))
      .filter((milliseconds) => milliseconds > 100)
      .map((milliseconds) => `${file} ${milliseconds}`),
  )
  t.same(
    [...SLEEPS.matchAll(/^\| `(\S+)` \| (\d+) \| .+ \|$/gm)].map(([, file, milliseconds]) => `${file} ${milliseconds}`),
    found.toSorted(),
  )
  t.end()
})

void test('the page of the support files names each of them, and no other', (t) => {
  const page = readFileSync(`${ROOT}/docs/contributing/test-support.md`, 'utf8')
  const [, tables = ''] = page.split('The tables list the files')
  const rows = [...tables.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, files = '']) => files.split(', '))
  t.same(
    rows.toSorted(),
    readdirSync(`${ROOT}/testing/support`)
      .map((file) => `\`${file}\``)
      .toSorted(),
  )
  t.end()
})

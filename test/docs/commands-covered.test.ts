/** Every command of a tutorial or how-to is run by a test, as it is printed. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { blocksOf, isCommand } from './commands.ts'
import { pages, ROOT } from './markdown.ts'

/** Second words of ```sh blocks that no test runs, and what such a block needs. */
const NEEDS: Readonly<Record<string, string>> = {
  docker: 'a container engine',
  install: 'a package registry, or a clone of the repository',
  kubernetes: 'a cluster',
  systemd: 'a service manager',
}

const PAGES = pages().filter(({ name }) => /^docs\/(?:tutorials|how-to)\//.test(name))

/** The tests without their comments. */
const TESTS = globSync('test/**/*.test.ts', { cwd: ROOT })
  .map((file) => readFileSync(join(ROOT, file), 'utf8').replaceAll(/^\s*(?:\/\/|\/?\*).*$/gm, ''))
  .join('\n')

const WHOLE = new Set(Array.from(TESTS.matchAll(/\brunBlocks\(\s*\w+,\s*'([^']+)'/g), ([, name]) => name))
const PARTS = new Set(
  Array.from(
    TESTS.matchAll(/\brunSection\(\s*\w+,\s*'([^']+)',\s*(?:'([^']+)'|"([^"]+)")/g),
    ([, name, heading, quoted]) => `${name}#${heading ?? quoted}`,
  ),
)

for (const one of PAGES) {
  const sections = [
    ...new Set(
      blocksOf(one)
        .filter(isCommand)
        .map(({ section }) => section),
    ),
  ]
  if (sections.length === 0) continue
  void test(one.name, (t) => {
    const untested = sections.filter((heading) => !WHOLE.has(one.name) && !PARTS.has(`${one.name}#${heading}`))
    t.same(untested, [], 'sections with commands that no runBlocks() or runSection() runs')
    t.end()
  })
}

void test('a block of commands is `sh`, `console`, or says what it needs', (t) => {
  for (const one of PAGES) {
    for (const { info, line } of blocksOf(one)) {
      const [language = '', ...words] = info.split(' ')
      if (language === 'sh' && words.length > 0)
        t.ok(words.length === 1 && Object.hasOwn(NEEDS, words[0]!), `${one.name}:${line}: ${info}`)
      t.notMatch(language, /^(?:bash|shell|zsh|shell-session)$/, `${one.name}:${line}`)
    }
  }
  t.end()
})

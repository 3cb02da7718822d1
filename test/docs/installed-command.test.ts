/** The alias that the installation defines runs the program of the clone from every folder. */
import { execFile } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { test } from 'tap'
import { makeFolder } from '../../testing/support/gateway.ts'
import { blocksOf } from './commands.ts'
import { page, ROOT } from './markdown.ts'

void test('the alias of the page', async (t) => {
  const alias = blocksOf(page('docs/how-to/deploy/in-front-of-a-runtime.md')).find(({ code }) => code.startsWith('alias '))
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const clone = join(folder, 'a clone')
  mkdirSync(join(clone, 'dist'), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'))
  writeFileSync(join(clone, 'package.json'), '{ "type": "module" }\n')
  writeFileSync(join(clone, 'dist/cli.js'), `await import(${JSON.stringify(pathToFileURL(join(ROOT, 'src/cli.ts')).href)})\n`)
  const commands = `shopt -s expand_aliases\n${alias?.code}cd /\nthreadwarden --version\n`
  const { stdout } = await promisify(execFile)('bash', ['-ec', commands], { cwd: clone })
  t.match(stdout, /^\d+\.\d+\.\d+/)
})

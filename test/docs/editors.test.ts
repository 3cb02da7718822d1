/** docs/how-to/authorize/editors.md names the schemas where they are: in a checkout, in the package, and in the settings of every editor. */
import { existsSync, readFileSync } from 'node:fs'
import { join, matchesGlob } from 'node:path'
import { test } from 'tap'
import { blocks, page, ROOT } from './markdown.ts'

const PAGE = page('docs/how-to/authorize/editors.md')
const SCHEMAS = ['config/threadwarden.schema.json', 'policies/policy.schema.json', 'policies/test.schema.json']

/** The schemas that a text names, in the package or in a checkout. */
function named(text: string, folder: 'package' | 'checkout'): readonly string[] {
  const pattern = folder === 'package' ? /node_modules\/threadwarden\/([\w./-]+)/g : /[./'"]\/([\w./-]+\.schema\.json)/g
  return [...new Set(Array.from(text.matchAll(pattern), ([, path = '']) => path))].sort()
}

void test('every schema is there, and is part of the package', (t) => {
  const { files } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { readonly files: readonly string[] }
  for (const schema of SCHEMAS) {
    t.ok(existsSync(join(ROOT, schema)), schema)
    t.ok(
      files.some((one) => matchesGlob(schema, one) || schema.startsWith(`${one}/`)),
      `${schema} is packed`,
    )
  }
  t.same(named(PAGE.text, 'package'), SCHEMAS)
  t.end()
})

void test('the settings of Visual Studio Code and of Neovim name each of them', (t) => {
  const [settings = ''] = blocks(PAGE, 'json')
  const mapped = JSON.parse(settings) as { readonly 'yaml.schemas': Readonly<Record<string, readonly string[]>> }
  t.same(named(Object.keys(mapped['yaml.schemas']).join('\n'), 'checkout'), SCHEMAS)
  t.ok(Object.values(mapped['yaml.schemas']).some((files) => files.includes('policy.yaml')))
  t.same(named(blocks(PAGE, 'lua').join('\n'), 'checkout'), SCHEMAS)
  t.end()
})

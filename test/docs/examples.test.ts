/**
 * Every example of a configuration or policy in the documentation is loaded as the program loads it. A part of a file
 * is put into the least valid one, and a rule into the shipped policy. YAML of another kind says so: ```yaml kubernetes.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'tap'
import { parse } from 'yaml'
import { loadConfig } from '../../src/config/load.ts'
import { Sources } from '../../src/document/sources.ts'
import { faultLine } from '../../src/document/fault.ts'
import { loadPolicy } from '../../src/policy/compile.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { blocks, pages, ROOT } from './markdown.ts'

type Tree = Readonly<Record<string, unknown>>
type Rules = readonly unknown[]

const LEAST_CONFIG: Tree = {
  version: 1,
  upstream: { url: 'http://127.0.0.1:4000', basePath: '/api/copilotkit' },
  authentication: { issuers: { corp: { issuer: 'https://login.example.com/', audiences: ['chat'], algorithms: ['RS256'] } } },
  ownership: { unknownThread: 'claim' },
}
const SHIPPED_POLICY = parse(readFileSync(join(ROOT, 'policies/default.yaml'), 'utf8')) as Tree

/** Every variable is set. */
const ENVIRONMENT = new Proxy(
  {},
  {
    get: (_target, name) => valueOf(String(name)),
    getOwnPropertyDescriptor: (_target, name) => ({ value: valueOf(String(name)), configurable: true, enumerable: true }),
  },
)

function valueOf(name: string): string {
  if (name === 'PORT') return '8080'
  return name.endsWith('_URL') ? 'https://chat.example.com' : 'a value'
}

/** The faults of an example, as an operator would read them. */
function faultsOf(example: string): readonly string[] {
  const { folder, remove } = makeFolder()
  try {
    const value = parse(example) as Tree | Rules
    const file = join(folder, 'example.yaml')
    const policy = asPolicy(value, example)
    writeFileSync(file, policy ?? withFiles(asConfig(value as Tree, example), folder))
    const sources = new Sources()
    const loaded =
      policy === null ? loadConfig(file, ENVIRONMENT, sources) : loadPolicy(sources, file, { issuers: issuersIn(example) })
    return loaded.ok ? [] : loaded.faults.map(faultLine)
  } finally {
    remove()
  }
}

/** The issuers that a policy names; `corp` if it names none. */
function issuersIn(example: string): readonly string[] {
  const named = new Set(Array.from(example.matchAll(/\bissuer: *([a-z0-9-]+)/g), ([, key = '']) => key))
  return named.size > 0 ? [...named] : ['corp']
}

function asConfig(value: Tree, example: string): string {
  return 'version' in value ? example : JSON.stringify({ ...LEAST_CONFIG, ...value })
}

/** The example as a whole policy, or null if it is none. */
function asPolicy(value: Tree | Rules, example: string): string | null {
  if (isRules(value)) return JSON.stringify({ ...SHIPPED_POLICY, rules: [...(SHIPPED_POLICY['rules'] as Rules), ...value] })
  if ('version' in value) return 'rules' in value ? example : null
  return Object.keys(value).some((key) => key in SHIPPED_POLICY) ? JSON.stringify({ ...SHIPPED_POLICY, ...value }) : null
}

function isRules(value: Tree | Rules): value is Rules {
  return Array.isArray(value)
}

/** Puts the files that an example refers to into its folder, also where it names them by an absolute path. */
function withFiles(example: string, folder: string): string {
  return example.replaceAll(/\$\{file:\/*([^}]+)\}/g, (_whole, path: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), 'a secret\n')
    return `\${file:${path}}`
  })
}

for (const page of pages()) {
  for (const [at, example] of blocks(page, 'yaml').entries()) {
    void test(`${page.name}, example ${at + 1}`, (t) => {
      t.same(faultsOf(example), [])
      t.end()
    })
  }
}

void test('an example that is wrong would be found', (t) => {
  t.match(faultsOf('listen: { prot: 8080 }')[0], /listen\.prot: is not a known key/)
  t.match(faultsOf('version: 1\nrules: []')[0], /rules: must have a rule/)
  t.match(faultsOf('- routes: [threads/clear]\n  allow: [signed-in]')[0], /allow it to operators only/)
  t.end()
})

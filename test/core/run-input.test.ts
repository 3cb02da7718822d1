/** The table of keys is that of the real schemas: what a version of AG-UI knows passes, with that version as `since`, and nothing else. */
import { createRequire } from 'node:module'
import { test } from 'tap'
import { AG_UI_VERSIONS, RUN_INPUT, type AgUiVersion, type KeyRule, type ValueRule } from '../../src/core/route/run-input.ts'

/** What is used here of a schema of zod 3 or 4. */
interface Schema {
  readonly shape?: Readonly<Record<string, Schema>>
  readonly element?: Schema
  readonly options?: readonly Schema[]
  readonly value?: string
  readonly _def: Definition
}

interface Definition {
  readonly typeName?: string
  readonly type?: unknown
  readonly innerType?: Schema
  readonly schema?: Schema
  readonly in?: Schema
  readonly discriminator?: string
}

/** The schema under what makes it optional, refined or transformed. */
function bare(schema: Schema): Schema {
  const inner = schema._def.innerType ?? schema._def.schema ?? schema._def.in
  return inner === undefined ? schema : bare(inner)
}

/** All keys of a schema by their place, and whether another value than a text may be there. */
function keysOf(schema: Schema, place: string, into = new Map<string, boolean>()): Map<string, boolean> {
  const { shape, element, options, _def: definition } = bare(schema)
  if (shape !== undefined) {
    for (const [key, inner] of Object.entries(shape)) {
      const path = place === '' ? key : `${place}.${key}`
      into.set(path, isOpen(inner))
      keysOf(inner, path, into)
    }
  } else if (/union/i.test(kindOf(definition))) {
    const { discriminator } = definition
    for (const one of options ?? []) {
      const variant = discriminator === undefined ? undefined : bare(one).shape?.[discriminator]?.value
      keysOf(one, variant === undefined ? place : `${place.replace(/\[\]$/, '')}[${variant}]`, into)
    }
  } else if (element !== undefined) keysOf(element, `${place}[]`, into)
  return into
}

function isOpen(schema: Schema): boolean {
  return /^(?:Zod)?(?:any|record|unknown|custom)$/i.test(kindOf(bare(schema)._def))
}

/** `ZodUnion` in zod 3, `union` in zod 4. */
function kindOf({ typeName, type }: Definition): string {
  return typeName ?? (typeof type === 'string' ? type : '')
}

function tableKeys(keys: ReadonlyMap<string, KeyRule>, place: string, into = new Map<string, KeyRule>()): Map<string, KeyRule> {
  for (const [key, rule] of keys) {
    const path = place === '' ? key : `${place}.${key}`
    into.set(path, rule)
    below(rule.value, path, into)
  }
  return into
}

function below(rule: ValueRule, place: string, into: Map<string, KeyRule>): void {
  if (typeof rule === 'string') return
  if (rule.kind === 'list') below(rule.items, place, into)
  else if (rule.kind === 'object') tableKeys(rule.keys, rule.name, into)
  else for (const variant of rule.variants.values()) tableKeys(variant.keys, variant.name, into)
}

const INSTALLED: Readonly<Record<string, readonly [folder: string, entry: string]>> = {
  '0.0.48': ['examples/runtime-1.54', '@ag-ui/core'],
  '0.0.59': ['examples', '@ag-ui/core'],
  '1.0': ['examples/agui-1.0', '@ag-ui/core/schemas'],
}

function schemaKeys(version: string): Map<string, boolean> {
  const [folder, entry] = INSTALLED[version] ?? []
  const require = createRequire(new URL(`../../${folder}/package.json`, import.meta.url))
  const { RunAgentInputSchema } = require(String(entry)) as { readonly RunAgentInputSchema: Schema }
  return keysOf(RunAgentInputSchema, '')
}

const TABLE = tableKeys(RUN_INPUT, '')

for (const version of Object.keys(INSTALLED)) {
  void test(`AG-UI ${version}: each key of its schema is in the table, since that version or before`, (t) => {
    const keys = schemaKeys(version)
    t.ok(keys.size > 40)
    for (const [path, open] of keys) {
      const rule = TABLE.get(path)
      t.ok(rule !== undefined && isBy(rule, version), path)
      t.equal(rule?.value === 'json', open, `${path}: a value of the application`)
    }
    t.end()
  })
}

void test('each key of the table is in a schema, and in no schema of an earlier version', (t) => {
  const schemas = Object.keys(INSTALLED).map((version) => [version, schemaKeys(version)] as const)
  for (const [path, rule] of TABLE) {
    t.ok(
      schemas.some(([, keys]) => keys.has(path)),
      path,
    )
    for (const [version, keys] of schemas) if (!isBy(rule, version)) t.notOk(keys.has(path), `${path} in ${version}`)
  }
  t.end()
})

function isBy({ since }: KeyRule, version: string): boolean {
  return AG_UI_VERSIONS.indexOf(since as AgUiVersion) <= AG_UI_VERSIONS.indexOf(version as AgUiVersion)
}

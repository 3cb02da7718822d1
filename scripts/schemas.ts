/**
 * Writes the JSON schemas for editors, the OpenAPI document of the admin API and the part of the Helm chart's schema that describes
 * the configuration, or with --check says whether the written ones still fit their source.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { z } from 'zod'
import { makeAdminApp, type AdminParts } from '../src/http/admin/admin.ts'
import { configSchema } from '../src/config/schema.ts'
import { policySchema } from '../src/policy/schema.ts'
import { testSchema } from '../src/tools/simulate/test-schema.ts'

const SCHEMAS = [
  { file: 'config/threadwarden.schema.json', schema: configSchema },
  { file: 'policies/policy.schema.json', schema: policySchema },
  { file: 'policies/test.schema.json', schema: testSchema },
]

const VALUES = 'deploy/helm/threadwarden/values.schema.json'

const check = process.argv.includes('--check')

function jsonSchema(schema: z.ZodType): Record<string, unknown> {
  return z.toJSONSchema(schema, { target: 'draft-07', io: 'input', unrepresentable: 'any' })
}

/** The chart's values, with the configuration in them. The chart itself asks for required keys, and says what to write. */
function valuesSchema(): unknown {
  const values = JSON.parse(readFileSync(new URL(`../${VALUES}`, import.meta.url), 'utf8')) as {
    definitions: Record<string, unknown>
  }
  const { $schema: _, required: __, ...configuration } = jsonSchema(configSchema)
  type Keys = 'listen' | 'ownership' | 'upstream'
  const { listen, ownership, upstream } = configuration['properties'] as Record<Keys, Record<string, unknown>>
  delete ownership['required']
  // tls.secretName gives the files.
  delete (listen['properties'] as Record<'tls', Record<string, unknown>>).tls['required']
  // The address of a runtime in the same pod is known.
  upstream['required'] = ['basePath']
  values.definitions['configuration'] = configuration
  return values
}

/** The document as the listener serves it: that operation uses nothing of the gateway. */
async function openApi(): Promise<unknown> {
  const credential = 'x'.repeat(32)
  const parts: Partial<AdminParts> = { credentials: { credentials: () => [credential] }, requestId: () => '', console: null }
  const app = makeAdminApp(parts as AdminParts)
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const answer = await fetch(`${url}/openapi.json`, { headers: { authorization: `Bearer ${credential}` } })
  await app.close()
  return answer.json()
}

const FILES = [
  { file: 'docs/reference/admin-api.openapi.json', content: await openApi() },
  ...SCHEMAS.map(({ file, schema }) => ({ file, content: jsonSchema(schema) as unknown })),
  { file: VALUES, content: valuesSchema() },
]

for (const { file, content } of FILES) {
  const path = new URL(`../${file}`, import.meta.url)
  const text = `${JSON.stringify(content, null, 2)}\n`
  if (!check) writeFileSync(path, text)
  else if (readFileSync(path, 'utf8') !== text) {
    process.stderr.write(`${file} does not fit its source: run npm run schemas\n`)
    process.exitCode = 1
  }
}

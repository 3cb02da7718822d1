/** The OpenAPI document of the admin API, made from its operations. */
import { z } from 'zod'
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiResponseObject } from 'zod-openapi'
import type { Operation, RefusalStatus } from './operations.ts'
import { errorSchema } from './schemas.ts'

const DESCRIPTION = `The HTTP API of Threadwarden for operators. It has its own listener, which is off unless \`admin\` is configured, and speaks plain
HTTP.

Before it looks at the path, the gateway answers 401 to every request without a valid credential, and 403 to a page of another
origin in a browser. HTTP that it cannot read gets 400 (\`header-malformed\`) or 431 (\`headers-too-large\`), and a bug of the gateway
gets 500 (\`internal\`). An unknown path, an unknown method of a known path, and a query that is not named here get 404
(\`not-found\`). Every answer of a route has an \`x-request-id\` header.`

const REFUSALS: Readonly<Record<RefusalStatus | 401 | 403, string>> = {
  400: 'The body, the id or the query is malformed; or a body was sent where none belongs.',
  401: 'No credential, or a wrong one.',
  403: 'The request comes from a page of another origin, or the session may only read.',
  404: 'There is nothing of the kind.',
  413: 'The body is too large.',
  415: 'The content type is not `application/json`.',
  503: 'The ownership store fails.',
}

const HEADERS: Partial<Record<number, Readonly<Record<string, { readonly schema: { readonly type: 'string' } }>>>> = {
  401: { 'www-authenticate': { schema: { type: 'string' } } },
  503: { 'retry-after': { schema: { type: 'string' } } },
}

export function openApiOf(operations: readonly Operation[]): ReturnType<typeof createDocument> {
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {}
  for (const operation of operations) {
    const path = operation.url.replaceAll(/:(\w+)/g, '{$1}')
    ;(paths[path] ??= {})[operation.method.toLowerCase()] = operationObject(operation)
  }
  return createDocument({
    openapi: '3.1.0',
    info: {
      title: 'Threadwarden admin API',
      version: '1',
      description: DESCRIPTION,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: 'http://127.0.0.1:9090', description: 'The default listener.' }],
    security: [{ credential: [] }],
    components: {
      securitySchemes: {
        credential: {
          type: 'http',
          scheme: 'bearer',
          description: '`admin.credential`, or a line of `admin.credentialFile`.',
        },
      },
    },
    paths,
  })
}

function operationObject({ id, summary, about, query, body, answers, refusals }: Operation): ZodOpenApiOperationObject {
  const given = Object.entries(answers).map(([status, { description, schema }]) => [status, answer(description, schema)] as const)
  const refused = ([401, 403, ...refusals] as const)
    .filter((status) => answers[status] === undefined)
    .map((status) => [String(status), answer(REFUSALS[status], errorSchema, HEADERS[status])] as const)
  return {
    operationId: id,
    summary,
    ...(about === undefined && query === undefined
      ? {}
      : {
          requestParams: {
            ...(about === undefined ? {} : { path: z.object({ id: z.string().describe(about) }) }),
            ...(query === undefined ? {} : { query: z.object(query) }),
          },
        }),
    ...(body === undefined ? {} : { requestBody: { required: true, content: { 'application/json': { schema: body } } } }),
    responses: Object.fromEntries([...given, ...refused]),
  }
}

function answer(
  description: string,
  schema?: z.ZodType,
  headers?: ZodOpenApiResponseObject['headers'],
): ZodOpenApiResponseObject {
  return {
    description,
    ...(headers === undefined ? {} : { headers }),
    ...(schema === undefined ? {} : { content: { 'application/json': { schema } } }),
  }
}

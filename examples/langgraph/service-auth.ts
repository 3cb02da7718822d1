/**
 * The authentication handler of a LangGraph server that accepts requests from the gateway only. The gateway sends a service token in
 * `Authorization` and the user in identity headers (docs/how-to/connect/hosted-graph-platform.md). Nodes read the result at
 * `config.configurable.langgraph_auth_user`.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { Auth, HTTPException } from '@langchain/langgraph-sdk/auth'

const TOKEN = process.env['GRAPH_SERVICE_TOKEN'] ?? ''
if (TOKEN.length < 32)
  throw new Error('GRAPH_SERVICE_TOKEN must have at least 32 characters: create it with openssl rand -base64 32')
const EXPECTED = digest(`Bearer ${TOKEN}`)

export const auth = new Auth().authenticate(({ headers }: Request) => {
  const id = headers.get('x-user-id')
  // Digests have one length, so the time of the comparison reveals neither the token nor its length.
  if (!timingSafeEqual(digest(headers.get('authorization') ?? ''), EXPECTED) || id === null) throw new HTTPException(401)
  const [role] = listIn(headers.get('x-user-role'))
  const permissions = listIn(headers.get('x-user-permissions'))
  return { identity: decodeURIComponent(id), ...(role !== undefined && { role }), permissions }
})

/** The gateway separates list members with commas, omits an empty list, and percent-encodes characters that a header cannot carry. */
function listIn(value: string | null): string[] {
  return value === null ? [] : value.split(',').map(decodeURIComponent)
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

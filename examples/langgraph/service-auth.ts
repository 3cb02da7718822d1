/**
 * Who is asking: the authentication handler of a LangGraph server that takes requests from one service alone, the gateway. It
 * has a token of its own, in `Authorization`; whoever shows that is believed what the identity headers say
 * (docs/how-to/connect/upstreams.md). Nodes find what it returns at `config.configurable.langgraph_auth_user`.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { Auth, HTTPException } from '@langchain/langgraph-sdk/auth'

const TOKEN = process.env['GRAPH_SERVICE_TOKEN'] ?? ''
if (TOKEN.length < 32) throw new Error('GRAPH_SERVICE_TOKEN: set 32 characters at least, of openssl rand -base64 32')
const EXPECTED = digest(`Bearer ${TOKEN}`)

export const auth = new Auth().authenticate(({ headers }: Request) => {
  const id = headers.get('x-user-id')
  // Compared by digest: the time that it takes tells nothing about the token, nor its length.
  if (!timingSafeEqual(digest(headers.get('authorization') ?? ''), EXPECTED) || id === null) throw new HTTPException(401)
  const [role] = listIn(headers.get('x-user-role'))
  const permissions = listIn(headers.get('x-user-permissions'))
  return { identity: decodeURIComponent(id), ...(role !== undefined && { role }), permissions }
})

/** The gateway puts commas between the parts of a list, leaves an empty one out, and encodes what a header can't hold. */
function listIn(value: string | null): string[] {
  return value === null ? [] : value.split(',').map(decodeURIComponent)
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

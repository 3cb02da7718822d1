/**
 * The authentication handler of a LangGraph server that verifies the users' own tokens. The gateway and the runtime forward them
 * in `Authorization` (docs/how-to/connect/hosted-graph-platform.md). Nodes read the result at `config.configurable.langgraph_auth_user`.
 */
import { Auth, HTTPException } from '@langchain/langgraph-sdk/auth'
// In your own project, import 'threadwarden/agent'.
import { makeVerifier, NotAuthenticated } from '../../src/sdk/agent/index.ts'

// The same values as in the gateway's configuration. Without an issuer this throws, and the server does not start.
const verify = makeVerifier({
  issuer: process.env['ISSUER_URL'] ?? '',
  audience: 'agent-chat',
  algorithms: ['RS256'],
  discovery: true,
})

export const auth = new Auth().authenticate(async (request: Request) => {
  try {
    const { user_id, role, permissions } = await verify(request.headers)
    return { identity: user_id, ...(role !== undefined && { role }), permissions: [...permissions] }
  } catch (error) {
    // Without the issuer's keys no token can be verified, which is not the caller's error.
    throw new HTTPException(error instanceof NotAuthenticated ? 401 : 503, { cause: error })
  }
})

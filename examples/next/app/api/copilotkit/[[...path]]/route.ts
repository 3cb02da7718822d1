/** The runtime, for signed-in users of this application: the session's access token goes to the hooks, which verify it. */
import { accessTokenOf } from '../../../../auth.ts'
import { runtimeHandler } from '../../../../lib/runtime.ts'
import { isSameOrigin } from '../../../../lib/same-origin.ts'

async function handle(request: Request): Promise<Response> {
  // A browser sends the session cookie by itself, also with requests that other sites cause.
  if (!isSameOrigin(request)) return Response.json({ error: 'cross-origin', message: 'cross-origin' }, { status: 403 })
  const headers = new Headers(request.headers)
  headers.delete('authorization')
  headers.delete('cookie')
  const token = await accessTokenOf(request)
  if (token !== null) headers.set('authorization', `Bearer ${token}`)
  const handler = await runtimeHandler()
  const { url, method, body, signal } = request
  // `new Request(request, …)` fails: Next.js hands over a proxy of the request.
  const init = { method, headers, body, signal, duplex: 'half' }
  return handler(new Request(url, init))
}

export { handle as DELETE, handle as GET, handle as HEAD, handle as OPTIONS, handle as PATCH, handle as POST, handle as PUT }

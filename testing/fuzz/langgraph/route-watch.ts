/** A middleware of the fuzzed server, as an operator could add one: it notes which route has served a request. */
import { loadPackage, type App, type Context } from './packages.ts'

export interface Resolved {
  /** As the server's router has it, such as `/threads/:thread_id`. */
  readonly path: string
  readonly params: Readonly<Record<string, string>>
}

const { Hono } = await loadPackage<{ readonly Hono: new () => App }>('hono/dist/index.js')
const { routePath } = await loadPackage<{ readonly routePath: (context: Context) => string }>('hono/dist/helper/route/index.js')

let resolved: Resolved | null = null

/** Takes what the last request was resolved to; null where no route served it. */
export function takeResolved(): Resolved | null {
  const last = resolved
  resolved = null
  return last
}

export default new Hono().use('*', async (context, next) => {
  await next()
  const path = routePath(context)
  if (!path.endsWith('*')) resolved = { path, params: context.req.param() }
})

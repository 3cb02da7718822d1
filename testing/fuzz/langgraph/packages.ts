/** Loads a file of the LangGraph server's packages, which only `examples/langgraph` has. */
export async function loadPackage<Module>(path: string): Promise<Module> {
  const url = new URL(`../../../examples/langgraph/node_modules/${path}`, import.meta.url)
  return (await import(url.href)) as Module
}

/** What the fuzz uses of a Hono context. */
export interface Context {
  readonly req: { param(): Readonly<Record<string, string>> }
}

/** What the fuzz uses of a Hono application. */
export interface App {
  use(path: string, middleware: (context: Context, next: () => Promise<void>) => Promise<void>): App
}

/** A loader that makes JavaScript of the sources: the instrumentation of Jazzer.js leaves alone what it does not read as a module. */
import { stripTypeScriptTypes, type LoadFnOutput, type LoadHookContext } from 'node:module'

type NextLoad = (url: string, context?: Partial<LoadHookContext>) => LoadFnOutput | Promise<LoadFnOutput>

/** Takes the types out of a module, and leaves all else where it stands. */
export async function load(url: string, context: LoadHookContext, nextLoad: NextLoad): Promise<LoadFnOutput> {
  const loaded = await nextLoad(url, context)
  if (loaded.format !== 'module-typescript') return loaded
  const { source } = loaded
  const text = typeof source === 'string' ? source : Buffer.from(source as Uint8Array).toString('utf8')
  return { ...loaded, format: 'module', source: stripTypeScriptTypes(text) }
}

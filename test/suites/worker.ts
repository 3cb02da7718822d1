/**
 * The process of test files (run-files.ts): first replaces two modules for all that is loaded from here on. An import statement would
 * not do, because what it names is found before any of this runs.
 */
import { registerHooks } from 'node:module'

const CURRENT_FILE = new URL('current-file.ts', import.meta.url).href
const DOMAIN = new URL('domain.ts', import.meta.url).href
const OF_TESTS = [new URL('..', import.meta.url).href, new URL('../../testing/', import.meta.url).href]

registerHooks({
  resolve(specifier, context, next) {
    const { parentURL = '' } = context
    if (specifier === 'async-hook-domain') return { url: DOMAIN, shortCircuit: true }
    const isOfTest = parentURL !== CURRENT_FILE && OF_TESTS.some((folder) => parentURL.startsWith(folder))
    return specifier === 'tap' && isOfTest ? { url: CURRENT_FILE, shortCircuit: true } : next(specifier, context)
  },
})

await import('./run-files.ts')

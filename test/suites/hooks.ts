/**
 * What a process that runs test files (worker.ts) imports in place of other modules. Node loads this file before all others: what an
 * import statement names is found before the file that contains the statement runs.
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

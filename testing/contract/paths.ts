/** Finds the routes of a runtime by asking its router for combinations of words. */
import type { Dictionary } from './dictionary.ts'

/** What the router makes of a path; null for nothing. */
export interface Resolved {
  readonly label: string
  readonly ids: Readonly<Record<string, string>>
  readonly methods: readonly string[]
}

export type Resolve = (path: string) => Promise<Resolved | null>

export interface FoundPath {
  readonly label: string
  readonly path: string
  readonly methods: readonly string[]
}

/** Texts that stand for an id, by the place in the path. */
const IDS = ['id-a', 'id-b', 'id-c', 'id-d']

/** Shorter paths come first: a longer one that only repeats the end of one is the same route. */
export async function findPaths(dictionary: Dictionary, resolve: Resolve): Promise<readonly FoundPath[]> {
  const found: FoundPath[] = []
  for (const segments of candidates(dictionary)) {
    const resolved = await resolve(segments.join('/'))
    if (resolved === null) continue
    const names = new Map(Object.entries(resolved.ids).map(([name, id]) => [id, name]))
    // A word that was taken for an id belongs to the path that has an id there.
    if (![...names.keys()].every((id) => IDS.includes(id))) continue
    const path = segments.map((word) => (names.has(word) ? `:${names.get(word)}` : word)).join('/')
    const isRepeated = found.some((one) => one.label === resolved.label && (path === one.path || path.endsWith(`/${one.path}`)))
    if (!isRepeated) found.push({ label: resolved.label, path, methods: resolved.methods })
  }
  return found
}

function* candidates({ routerWords, words }: Dictionary): Generator<readonly string[]> {
  const [a = '', b = '', c = '', d = ''] = IDS
  for (const word of words) yield [word]
  for (const word of words) {
    yield [a, word]
    yield [word, b]
    for (const router of routerWords) {
      yield [router, word]
      yield [word, router]
    }
  }
  for (const first of [...routerWords, a]) {
    for (const second of [...routerWords, b]) for (const third of [...routerWords, c]) yield [first, second, third]
    for (const word of words) yield [first, b, word]
  }
  // With one id or two: a path of four fixed words would be found by its label alone.
  for (const first of routerWords) {
    for (const one of routerWords) {
      for (const two of routerWords) {
        yield [first, b, one, two]
        yield [first, one, c, two]
        yield [first, one, two, d]
      }
      yield [first, b, c, one]
      yield [first, b, one, d]
      yield [first, one, c, d]
    }
  }
}

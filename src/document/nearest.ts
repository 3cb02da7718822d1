/** Suggests the name that a misspelt word was probably meant to be. */
import { distance } from 'fastest-levenshtein'

/** The most letters that may differ; in a short word at most half of them. */
const MOST_DIFFERING = 3

/** @returns undefined if no name is near. Upper and lower case count as equal */
export function nearest(word: string, names: readonly string[]): string | undefined {
  const differing = (name: string): number => distance(word.toLowerCase(), name.toLowerCase())
  const [best] = names.toSorted((one, other) => differing(one) - differing(other))
  if (best === undefined || word === '') return undefined
  const letters = differing(best)
  return letters <= MOST_DIFFERING && letters * 2 <= word.length ? best : undefined
}

/** `did you mean "port"?`, or the names that exist: `known here: host, port`. */
export function suggestion(word: string, names: readonly string[], lead = 'known here'): string {
  const near = nearest(word, names)
  return near === undefined ? `${lead}: ${names.join(', ')}` : `did you mean "${near}"?`
}

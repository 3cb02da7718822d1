/** What somebody may have meant who wrote a word that isn't there. */
import { closest, distance } from 'fastest-levenshtein'

/**
 * A hint beside "there is no such thing".
 * @param word what was written
 * @param words what there is; at least one
 */
export function suggestion(word: string, words: readonly string[]): string {
  const near = closest(word, words)
  return distance(word, near) <= 3 ? `did you mean "${near}"?` : `it has: ${words.join(', ')}`
}

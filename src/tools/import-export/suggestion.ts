/** Suggests the existing word that an operator may have meant. */
import { closest, distance } from 'fastest-levenshtein'

/** @param words the existing words; at least one */
export function suggestion(word: string, words: readonly string[]): string {
  const near = closest(word, words)
  return distance(word, near) <= 3 ? `did you mean "${near}"?` : `it has: ${words.join(', ')}`
}

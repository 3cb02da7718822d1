/** Phrases that texts of this repository do not use, and plain ones in their place (docs/contributing/writing.md). */

export interface Phrase {
  /** As the page lists it. */
  readonly phrase: string
  /** What to write in its place. */
  readonly write: string
  /** Finds it; a space is any white space, also one between two lines of a comment. */
  readonly pattern: string
}

/** Verbs after which "what is" asks: "the log line says what is wrong". */
const ASKING =
  'says?|said|tells?|told|shows?|shown|asks?|asked|checks?|sees?|know|knows|learns?|explains?|decides?|reports?|lists?|describes?|names?|finds? out|and|or'

export const PHRASES: readonly Phrase[] = [
  { phrase: 'stands in front of', write: 'proxies, runs before', pattern: 'st(?:ands?|ood|anding) (?:in front of|before)' },
  {
    phrase: 'stands in, at, below, beside',
    write: 'is in, is listed in, follows',
    pattern: 'st(?:ands?|ood) (?:in(?! front of)|at|on|above|below|beside|between|under|there)',
  },
  { phrase: 'anew', write: 'again, re-', pattern: 'anew' },
  { phrase: 'mend', write: 'fix', pattern: 'mend(?:s|ed|ing)?' },
  { phrase: 'let go of', write: 'release', pattern: 'let(?:s|ting)? go(?: of)?' },
  { phrase: 'comes to', write: 'becomes, reaches', pattern: '(?:comes?|came|coming) to' },
  { phrase: 'put in force, come into force, in force', write: 'apply, activate, active', pattern: '(?:in|into) force' },
  { phrase: 'goes by', write: 'uses, follows', pattern: '(?:go|goes|going|gone|went) by' },
  {
    phrase: 'holds (is true)',
    write: 'applies, is guaranteed',
    pattern:
      '(?:holds? (?:for|in(?! memory)|only (?:if|when|where|while|for|in)|true|good|everywhere|here|too|also|likewise|if|when|where|as well)|(?:it|this|that|which|same|rule|promise|limit) holds?(?=[.,;:]))',
  },
  { phrase: 'takes leave', write: 'disconnects, leaves the group', pattern: '(?:takes?|took|taking|taken) leave' },
  { phrase: 'is away', write: 'is unreachable', pattern: '(?:is|are|was|were|be) away' },
  {
    phrase: 'words (a message)',
    write: 'message, text, body',
    pattern: '(?:the|its|their|these|those|own|other|such|few|many|in|of) words(?! (?:in|of) (?:the )?(?:path|route|command))',
  },
  { phrase: 'whoever', write: 'the caller, the user, the operator', pattern: 'whoever|whomever|whosoever' },
  { phrase: 'nobody', write: 'no user, no caller', pattern: '(?<!")nobody(?!")' },
  { phrase: 'somebody', write: 'a user, a caller', pattern: 'somebody' },
  { phrase: 'everybody', write: 'all users, every caller', pattern: '(?<!")everybody(?!")' },
  { phrase: 'anybody', write: 'any user, any caller', pattern: 'anybody' },
  { phrase: 'that which', write: 'the thing, by its name', pattern: 'that which' },
  { phrase: 'of whom, to whom', write: 'a sentence whose subject is the user', pattern: '(?:of|to|for|from|by|with|about) whom' },
  {
    phrase: 'what is (as a noun)',
    write: 'the noun: `unknown fields`, not `what is unknown`',
    // Neither a question nor an indirect one.
    pattern: `(?<!\\b(?:${ASKING})[ \\n]+)what (?:is|are|was|were)\\b(?![^.!?]*\\?)`,
  },
]

/** The patterns, ready to search texts in which a comment may break a line. */
export const SEARCHES: readonly (Phrase & { readonly search: RegExp })[] = PHRASES.map((phrase) => {
  const source = phrase.pattern.replaceAll(/(?<!\[) (?!\\)/g, String.raw`\s+(?:(?:\*|//|#|>)\s+)?`)
  return { ...phrase, search: new RegExp(String.raw`(?<![\w-])(?:${source})(?![\w-])`, 'gi') }
})

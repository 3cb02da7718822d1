/**
 * Why some tests do not run in process: hooks get a request that a server has parsed already, and what it folded, joined or
 * refused they can't see (docs/how-to/connect/in-process.md, "Differences from the proxy"). What holds there instead is in
 * test/hooks/what-hooks-cannot-hold.test.ts.
 */

const LINES = 'the server joins header lines, or keeps one of them, before any hook'
const PARSER = 'the server parses and refuses, in its own words and within its own limits'
const TARGET = 'the server folds targets, or makes no request of them, before any hook'
const METHOD = 'fetch knows no TRACE and no CONNECT: the server answers them itself'
const ADDRESS = 'no hook is told the address of a caller'
const CONNECTION = 'connections are the server’s, to the caller, and there are none to the runtime'

/** The tests, by their names, each with its reason. */
export const NOT_IN_PROCESS: Readonly<Record<string, string>> = {
  'in mode required more than one credential is refused, and nothing arrives': LINES,
  'in mode optional more than one credential is refused, and nothing arrives': LINES,
  'in mode off more than one credential is refused, and nothing arrives': LINES,
  'two types or two codings are 400, whichever is the good one': LINES,
  'several credentials are refused, whichever of them is good': LINES,
  'a coding, or a second type, does not come along': LINES,
  'where nobody has to sign in, a header that is no good credential is still refused': LINES,
  'nor does naming one get a request past the gate': LINES,
  'a run that is refused here writes no row': LINES,
  'a list, an empty connect and every refusal are not stored': LINES,
  'a header line that is none is no credential': PARSER,
  'versions other than 1.0 and 1.1 reach nothing, with the best of tokens': PARSER,
  'a name that is let through opens no other spelling, and no value makes a second line': PARSER,
  'framing with two readings is 400, and the envelope behind it arrives nowhere': PARSER,
  'a head beyond its bound is 431, whatever envelope follows': PARSER,
  'what is no target is refused by the parser, and the connection ends': PARSER,
  'a target that a URL parser reads as another path is refused before authentication': TARGET,
  'characters that no path has is refused for every method and every caller': TARGET,
  'no path of this server is refused for every method and every caller': TARGET,
  'a query with two readings is refused before anybody is asked who they are': TARGET,
  'whatever the base path, it is answered here': TARGET,
  'methods that a route does not have are 405 and name those it has': METHOD,
  'X-Forwarded-For names the caller in the log only where a trusted proxy sent it': ADDRESS,
  'each request has one line, with who, what and why': ADDRESS,
  'a connection that was refused releases the thread': CONNECTION,
  'a length that is too large is 413 before a byte has come, on every route, and 401 to a stranger': CONNECTION,
  'a body is bounded by what comes, not by what was stated': CONNECTION,
  'Upgrade is ignored: the request is answered as the one it is': CONNECTION,
  'behind an Upgrade nothing is read: not as HTTP/1, with the best of tokens, and not as another protocol': CONNECTION,
  'what comes in one piece with an Upgrade, frames or another request, goes nowhere': CONNECTION,
  'CONNECT opens nothing, to the upstream or to anybody else': METHOD,
  'chunk extensions and trailers that do not end are no way to send without end': PARSER,
  'over the real gateway the longest token passes, and one character more reaches nothing': PARSER,
  'HTTP/2 without asking is no request': PARSER,
  'a method in another case, or of other letters, is none': PARSER,
}

/** The reason against a test in process; null if there is none. */
export function reasonAgainst(name: string): string | null {
  return NOT_IN_PROCESS[name] ?? null
}

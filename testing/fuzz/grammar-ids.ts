/** Ids as hostile callers choose them: some that are fine, and those that somebody reads in another way. */
import fc from 'fast-check'
import { ROUTE_WORDS } from '../../src/core/route/ids.ts'
import { FOREIGN, UNKNOWN } from './gate-under-test.ts'

const UUID = '0b0e4f7a-6f0c-4a55-9d3c-2f6d8a1b9c0e'

/** A thread or memory id that is fine. */
export const goodId = fc.oneof(
  { arbitrary: fc.constantFrom('t1', 'T1', 'a.b', 'a:b', 'a_b-c', '0', 'threads1', 'x-run', UUID, 'y'.repeat(128)), weight: 8 },
  { arbitrary: fc.constantFrom(`${FOREIGN}-1`, `${FOREIGN}-2`, `${UNKNOWN}-1`, `${UNKNOWN}-2`), weight: 1 },
  {
    arbitrary: fc.string({ unit: fc.constantFrom(...'abzABZ019_:.-'), minLength: 1, maxLength: 10 }).map((text) => `a${text}z`),
    weight: 2,
  },
)

/** The arbitrary of fast-check for these characters takes seconds to be made. */
const codePoint = fc
  .oneof(fc.nat({ max: 0x7f }), fc.nat({ max: 0x2fff }), fc.nat({ max: 0x10_ffff }))
  .filter((point) => point < 0xd800 || point > 0xdfff)

/** Ids that are not fine, or that some reader takes for another. */
export const oddId = fc.oneof(
  fc.constantFrom('', '..', 'clear', 'run', 'stop', 'info', UUID.toUpperCase(), 'constructor'),
  fc.constantFrom(...ROUTE_WORDS),
  fc.constantFrom(...ROUTE_WORDS).map((word) => word.toUpperCase()),
  fc.constantFrom(
    ...['', '.', '..', '...', 'a.', '.a', '-a', 'a/b', '../t2', 'a\\b', '..\\t2', 'a%2Fb', '%', '%2e', 't1%00', 'a b', ' t1'],
    ...['a;b', 'a#b', 'a?b', 'a&b', 'a=b', 'a+b', 'a|b', 'a"b', 'a{b}', '<a>', "a'b", 'a,b', 'a@b', 'a!', 'a~', '(a)', '*', '$a'],
    ...['\0', 't1\0', 't1\n', 't1\t', '\x7f', 't1\r\nx: y', '\u0085', '\u2028'],
    ...['é', 'e\u0301', '\uff54\uff11', 't\u200b1', '\ufefft1', 'ı', 'K', 'ſ', '\u2215', '\uff0f', '\u2024\u2024', '😀'],
    ...['constructor', 'toString', '__proto__', 'hasOwnProperty', 'null', 'undefined', 'true', '1e3'],
    ...[UUID.toUpperCase(), UUID.replaceAll('-', ''), `{${UUID}}`, `urn:uuid:${UUID}`, `${UUID.slice(0, 8)}${UUID.slice(9)}`],
    ...['z'.repeat(129), 'z'.repeat(400), 't1.json', 't1/', 't1/messages', 'clear/', 'threads/clear', 'info?', 'run#'],
  ),
  fc
    .array(codePoint, { minLength: 1, maxLength: 6 })
    .map((points) => points.map((point) => String.fromCodePoint(point)).join('')),
)

/** Mostly fine. */
export const anyId = fc.oneof({ arbitrary: goodId, weight: 9 }, { arbitrary: oddId, weight: 2 })

/** An agent id, mostly fine. */
export const agentId = fc.oneof(
  { arbitrary: fc.constantFrom('default', 'remote', 'agent', 'a.b', 'b_c-d', 'A'), weight: 9 },
  { arbitrary: oddId, weight: 2 },
)

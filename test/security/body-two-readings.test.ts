/**
 * A body that two parsers read differently: the gateway checks one thread id, the upstream reads another. That is how
 * anybody became administrator of CouchDB (CVE-2017-12635: a key twice, one parser takes the first, one the last); RFC 8259
 * §4 leaves it open, as §8.1 does byte order marks. What has two readings is refused, what passes is written anew.
 */
import { gzipSync } from 'node:zlib'
import { testEachPair } from '../../testing/support/pairs.ts'
import { gated } from '../../testing/support/gated.ts'
import { events } from '../../testing/support/upstream.ts'
import { BASE, BODY_TARGETS, codeIn, run } from './thread-routes.ts'

const RUN = `${BASE}/agent/default/run`

const nested = (depth: number): string => `{"threadId":"mine","state":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`

/** A key with one of its characters escaped, in every way that JSON has for it. */
function escapedSpellings(key: string): string[] {
  return [...key].flatMap((character, at) => {
    const hex = character.charCodeAt(0).toString(16).padStart(4, '0')
    return [...new Set([hex, hex.toUpperCase()])].map((digits) => `${key.slice(0, at)}\\u${digits}${key.slice(at + 1)}`)
  })
}

/** Bytes around which everything else is a run on the caller's own thread. */
function withBytes(...bytes: number[]): Buffer {
  return Buffer.concat([Buffer.from('{"threadId":"mine","state":"'), Buffer.from(bytes), Buffer.from('"}')])
}

const HONEST = '{"threadId":"mine"}'

const TWICE: Record<string, string> = {
  'the id twice, the own one first': '{"threadId":"mine","threadId":"foreign"}',
  'the id twice, the own one last': '{"threadId":"foreign","threadId":"mine"}',
  'the same id twice': '{"threadId":"mine","threadId":"mine"}',
  'the id three times': '{"threadId":"mine","threadId":"foreign","threadId":"mine"}',
  'the id far from its second': `{"threadId":"mine","state":"${'x'.repeat(70_000)}","threadId":"foreign"}`,
  'once with a value that is none': '{"threadId":null,"threadId":"mine"}',
  'all of the key escaped': `{"threadId":"mine","${[...'threadId'].map((one) => `\\u00${one.charCodeAt(0).toString(16)}`).join('')}":"foreign"}`,
  'a dropped key twice': '{"threadId":"mine","userId":"a","userId":"b"}',
  'an empty key twice': '{"threadId":"mine","state":{"":1,"":2}}',
  'a key twice in an array': '{"threadId":"mine","messages":[{"id":"1","role":"user","role":"system"}]}',
  'a key twice far inside': '{"threadId":"mine","state":{"a":[{"b":1,"\\u0062":2}]}}',
  'a key twice in forwardedProps': '{"threadId":"mine","forwardedProps":{"toolChoice":1,"toolChoice":2}}',
  'a key twice in a part that is dropped': '{"threadId":"mine","config":{"a":1,"a":2}}',
  'keys with a backslash, escaped in two ways': '{"threadId":"mine","state":{"a\\\\b":1,"a\\u005cb":2}}',
  'keys with a quote, escaped in two ways': '{"threadId":"mine","state":{"a\\"b":1,"a\\u0022b":2}}',
  'keys with a slash, escaped or not': '{"threadId":"mine","state":{"a/b":1,"a\\/b":2}}',
  'keys of one pair of surrogates, escaped or not': '{"threadId":"mine","state":{"😀":1,"\\ud83d\\ude00":2}}',
  ...Object.fromEntries(
    escapedSpellings('threadId').map((key) => [`the second one as ${key}`, `{"threadId":"mine","${key}":"foreign"}`]),
  ),
  ...Object.fromEntries(
    escapedSpellings('messages').map((key) => [`the second one as ${key}`, `{"threadId":"mine","messages":[],"${key}":[1]}`]),
  ),
}

const PROTO: Record<string, string> = {
  __proto__: '{"threadId":"mine","__proto__":{"threadId":"foreign"}}',
  '__proto__ alone': '{"__proto__":{"threadId":"mine"}}',
  '__proto__ in an array': '{"threadId":"mine","state":[{"__proto__":1}]}',
  '__proto__ in forwardedProps': '{"threadId":"mine","forwardedProps":{"__proto__":{"config":{}}}}',
  '__proto__ in a part that is dropped': '{"threadId":"mine","config":{"__proto__":null}}',
  '__proto__ twice': '{"threadId":"mine","__proto__":1,"__proto__":2}',
  ...Object.fromEntries(escapedSpellings('__proto__').map((key) => [key, `{"threadId":"mine","${key}":{"threadId":"foreign"}}`])),
}

const NOT_JSON: Record<string, string | Uint8Array> = {
  nothing: ' ',
  half: '{"threadId":"mine"',
  'trailing bytes': `${HONEST}x`,
  'a second value': `${HONEST}{"threadId":"foreign"}`,
  'a second line': `${HONEST}\n{"threadId":"foreign"}`,
  'a second value behind a record separator': `\u001e${HONEST}\n\u001e{"threadId":"foreign"}`,
  'a comma at the end': `${HONEST},`,
  'a null byte at the end': `${HONEST}\u0000`,
  'a closing brace too many': `${HONEST}}`,
  'a form around it': `${HONEST}=`,
  'the guard of a JSON page before it': `)]}',\n${HONEST}`,
  'a comment': '{"threadId":"mine"/* ,"threadId":"foreign" */}',
  'a comment to the end of the line': '{"threadId":"mine" //,\n}',
  'a trailing comma': '{"threadId":"mine",}',
  'single quotes': "{'threadId':'mine'}",
  'no quotes': '{threadId:"mine"}',
  'a line break in a string': '{"threadId":"mine","state":"a\nb"}',
  'an unknown escape': '{"threadId":"mine","state":"\\x41"}',
  'half an escape': '{"threadId":"mine","state":"\\u00"}',
  'a no-break space': `{"threadId":"mine"\u00a0}`,
  'a form feed': '{"threadId":"mine"\f}',
  'a line separator': '{"threadId":"mine"\u2028}',
  'an array': `[${HONEST}]`,
  'a string': '"mine"',
  'JSON in a string': JSON.stringify(HONEST),
  null: 'null',
  'a number': '1',
}

const NUMBERS: Record<string, string> = {
  NaN: 'NaN',
  Infinity: '-Infinity',
  'a hexadecimal number': '0x10',
  'a leading zero': '010',
  'a leading plus': '+1',
  'no digit before the point': '.5',
  'no digit behind the point': '1.',
  'separated digits': '1_000',
  'a big integer': '1n',
  'beyond range': '1e999',
  'beyond range below zero': '-1e400',
  'beyond range far inside': '[{"a":[1e309]}]',
}

const CHARSETS: Record<string, string | Uint8Array> = {
  'a byte order mark': `\ufeff${HONEST}`,
  'two byte order marks': `\ufeff\ufeff${HONEST}`,
  'a byte order mark behind a space': ` \ufeff${HONEST}`,
  'a byte order mark at the end': `${HONEST}\ufeff`,
  'UTF-16': Buffer.from(HONEST, 'utf16le'),
  'UTF-16 with its mark': Buffer.from(`\ufeff${HONEST}`, 'utf16le'),
  'UTF-16, the other end first': Buffer.from(HONEST, 'utf16le').swap16(),
  'UTF-32': Buffer.from([...HONEST].flatMap((one) => [one.charCodeAt(0), 0, 0, 0])),
  'UTF-7': '+AHsAIg-threadId+ACIAOgAi-mine+ACIAfQ-',
  'Latin-1': withBytes(0xfc),
  'a byte that no UTF-8 has': withBytes(0xff),
  'a byte that only continues': withBytes(0x80),
  'half a character': withBytes(0xe2, 0x82),
  'a slash in more bytes than needed': withBytes(0xc0, 0xaf),
  'a quote in more bytes than needed': withBytes(0xc0, 0xa2),
  'a quote in three bytes': withBytes(0xe0, 0x80, 0xa2),
  'a null byte in two bytes': withBytes(0xc0, 0x80),
  'half a surrogate pair': withBytes(0xed, 0xa0, 0x80),
  'a surrogate pair as two characters (CESU-8)': withBytes(0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80),
  'beyond the last code point': withBytes(0xf4, 0x90, 0x80, 0x80),
  'a quote in more bytes than needed, to end the id': Buffer.concat([
    Buffer.from('{"threadId":"mine'),
    Buffer.from([0xc0, 0xa2]),
    Buffer.from(',"x":"y"}'),
  ]),
  'gzip that no header tells of': gzipSync(HONEST),
}

const DEEP: Record<string, string> = {
  'one level too deep': nested(129),
  'very deep': nested(200_000),
  'very deep, of objects': `{"threadId":"mine","state":${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}}`,
  'deep and never closed': `{"threadId":"mine","state":${'['.repeat(100_000)}`,
}

const GROUPS: Record<string, Record<string, string | Uint8Array>> = {
  'a key twice, at any level and in any spelling': TWICE,
  '__proto__, at any level and in any spelling': PROTO,
  'what is no JSON, or more than one': NOT_JSON,
  'numbers that JSON has not, or that overflow': Object.fromEntries(
    Object.entries(NUMBERS).map(([name, text]) => [name, `{"threadId":"mine","state":${text}}`]),
  ),
  'other charsets, byte order marks and bytes that are no UTF-8': CHARSETS,
  'nesting that would overflow a stack': DEEP,
}

for (const [group, bodies] of Object.entries(GROUPS)) {
  void testEachPair(`${group}: 400 body-malformed, and nothing arrives`, async (t, pair) => {
    const { gateway, alice, bob, upstream } = await gated(t, events(), { pair })
    t.equal(await run(gateway, alice, 'mine'), 200)
    t.equal(await run(gateway, bob, 'foreign'), 200)
    const before = upstream.beginnings()
    for (const [name, body] of Object.entries(bodies)) {
      const answer = await gateway.ask({ target: RUN, token: alice, body })
      t.same([answer.status, codeIn(answer)], [400, 'body-malformed'], name)
    }
    t.equal(upstream.beginnings(), before)
    t.equal((await gateway.ask({ target: RUN, token: alice, body: HONEST })).status, 200, 'the honest spelling passes')
    t.equal(upstream.requests.at(-1)?.body.toString(), HONEST)
  })
}

void testEachPair('every route that takes JSON reads it by the same rules', async (t, pair) => {
  const { client } = pair
  const { gateway, alice, olga, upstream } = await gated(t, events(), { pair, config: { upstream: { userScoped: true } } })
  t.equal(await run(gateway, alice, 'mine'), 200)
  const targets: readonly (readonly [string, string, string])[] = [
    ...BODY_TARGETS.map(({ target }) => ['POST', target, alice] as const),
    ['POST', `${BASE}/agent/default/stop/mine`, alice],
    ['PATCH', `${BASE}/threads/mine`, alice],
    ['DELETE', `${BASE}/threads/mine`, alice],
    ['POST', `${BASE}/threads/mine/archive`, alice],
    ['POST', `${BASE}/threads/subscribe`, alice],
    ['POST', `${BASE}/threads/clear`, olga],
    ['POST', `${BASE}/transcribe`, alice],
  ]
  const before = upstream.beginnings()
  for (const [method, target, token] of targets) {
    for (const body of [
      '{"threadId":"mine","threadId":"foreign"}',
      '{"agentId":"default","agent\\u0049d":"other"}',
      '{"threadId":"mine","__proto__":{}}',
      '{"threadId":"mine"} {}',
      '\ufeff{"threadId":"mine"}',
      'null',
    ]) {
      // In an envelope null is no body, and these can do without one.
      const optional = method === 'DELETE' || /\/(?:stop\/mine|archive|subscribe|clear)$/.test(target)
      if (client === 'single-route' && body === 'null' && optional) continue
      const answer = await gateway.ask({ method, target, token, body })
      t.same([answer.status, codeIn(answer)], [400, 'body-malformed'], `${method} ${target} ${body}`)
    }
  }
  t.equal(upstream.beginnings(), before)
})

void testEachPair('a body that passes arrives written again, with one reading', async (t, pair) => {
  const { client } = pair
  // The envelope is a level of its own.
  const deepest = nested(client === 'single-route' ? 127 : 128)
  const { gateway, alice, upstream } = await gated(t, events(), { pair })
  for (const [sent, arrived] of [
    [
      ' { "state" : {"\\u0061" : 1.0e1, "ü":"\\u00fc"},\n"\\u0074hreadId":"mine" } ',
      '{"state":{"a":10,"ü":"ü"},"threadId":"mine"}',
    ],
    ['{"threadId":"\\u006dine"}', '{"threadId":"mine"}'],
    ['{"threadId":"mine","state":9007199254740993}', '{"threadId":"mine","state":9007199254740992}'],
    ['{"threadId":"mine","state":-0.0}', '{"threadId":"mine","state":0}'],
    ['{"threadId":"mine","state":1e-999}', '{"threadId":"mine","state":0}'],
    ['{"threadId":"mine","state":"\\/\\u2028"}', '{"threadId":"mine","state":"/\u2028"}'],
    ['{"threadId":"mine","state":"\\ud800"}', '{"threadId":"mine","state":"\\ud800"}'],
    ['\t\r\n{"threadId"\t:\r"mine"}\n', '{"threadId":"mine"}'],
    [
      '{"threadId":"mine","state":{"constructor":{"prototype":1}}}',
      '{"threadId":"mine","state":{"constructor":{"prototype":1}}}',
    ],
    ['{"threadId":"mine","state":{"a\\\\":1,"a":2}}', '{"threadId":"mine","state":{"a\\\\":1,"a":2}}'],
    [deepest, deepest],
  ] as const) {
    t.equal((await gateway.ask({ target: RUN, token: alice, body: sent })).status, 200, sent.slice(0, 60))
    const { body, headers } = upstream.requests.at(-1)!
    t.equal(body.toString('utf8'), arrived)
    t.same(headers.get('content-length'), [String(Buffer.byteLength(arrived))])
    t.same(headers.get('content-type'), ['application/json'])
    t.notOk(headers.has('content-encoding'))
  }
})

/**
 * Recordings as forms: what a browser sends, and then what one reader of multipart takes for another file than the next.
 * An upstream that takes no forms gets what the gateway read.
 */
import fc from 'fast-check'

// oxfmt-ignore
const NAMES = ['name="audio"', 'name=audio', 'name="Audio"', 'name="aud%69o"', 'name="x"', 'name=""', 'NAME="audio"', 'name="audio"; name="x"', 'name*=utf-8\'\'audio', 'name="au\\dio"', 'name="audio\\""', 'name="audio[]"']
// oxfmt-ignore
const FILE_NAMES = ['', '; filename=""', '; filename="b.webm"', '; filename=a.webm', '; filename="../../etc/passwd"', '; filename="a%22b.webm"', '; filename="a\\"b.webm"', '; filename*=utf-8\'\'%e2%82%ac.webm', '; filename="a.webm"; filename*=utf-8\'\'b.webm', '; filename="\xc3\xa9.webm"', '; filename="\xff.webm"', '; filename="a;b.webm"', '; filename="__proto__"']
// oxfmt-ignore
const TYPES = ['', 'Content-Type: audio/webm;codecs=opus\r\n', 'Content-Type: Audio/WebM\r\n', 'Content-Type: application/octet-stream\r\n', 'Content-Type: text/html\r\n', 'Content-Type: audio/webm, text/html\r\n', 'Content-Type: \r\n', 'content-type:audio/ogg\r\n', 'Content-Type: audio/webm\r\nContent-Type: audio/mp3\r\n', 'Content-Transfer-Encoding: base64\r\nContent-Type: audio/webm\r\n', 'X-A: b\r\nContent-Type: audio/webm\r\n']
// oxfmt-ignore
const CONTENTS = ['', 'x', '\0\0', '\xff\xfe', '\xe2\x82', '--b1', '\r\n--b1x\r\n', '\r\n', '\n--b1\n', '{"method":"agent/run","params":{"agentId":"default"},"body":{"threadId":"victim-1"}}', 'R0s='.repeat(20)]

const mostly = (usual: string, others: readonly string[]): fc.Arbitrary<string> =>
  fc.oneof({ arbitrary: fc.constant(usual), weight: 6 }, { arbitrary: fc.constantFrom(...others), weight: 1 })

const part = fc
  .tuple(
    mostly('name="audio"', NAMES),
    mostly('; filename="a.webm"', FILE_NAMES),
    mostly('Content-Type: audio/webm\r\n', TYPES),
    mostly('\x1a\x45\r\n', CONTENTS),
  )
  .map(
    ([name, file, type, content]) =>
      (boundary: string) =>
        `--${boundary}\r\nContent-Disposition: form-data; ${name}${file}\r\n${type}\r\n${content}\r\n`,
  )

const field = (boundary: string): string => `--${boundary}\r\nContent-Disposition: form-data; name="threadId"\r\n\r\nvictim-1\r\n`

const parts = fc.oneof(
  { arbitrary: part.map((one) => [one]), weight: 8 },
  { arbitrary: part.map((one) => [field, one]), weight: 1 },
  { arbitrary: part.map((one) => [one, field]), weight: 1 },
  { arbitrary: fc.tuple(part, part), weight: 1 },
  { arbitrary: fc.constant([]), weight: 1 },
)

/** Edits of the whole. */
const frame = fc.oneof(
  { arbitrary: fc.constant((text: string) => text), weight: 12 },
  {
    arbitrary: fc.constantFrom<((text: string) => string)[]>(
      (text) => `preamble\r\n${text}`,
      (text) => `\r\n${text}`,
      (text) => `${text}epilogue`,
      (text) => `${text}${text}`,
      (text) => text.replaceAll('\r\n', '\n'),
      (text) => text.slice(0, -4),
      (text) => text.slice(0, -2),
      (text) => text.replace('--\r\n', '-- \r\n'),
      (text) => text.replace('form-data', 'attachment'),
      (text) => text.replace('Content-Disposition', 'content-disposition'),
      (text) => text.replace('\r\n\r\n', '\r\n'),
    ),
    weight: 1,
  },
)

/** A form, a character for each byte. */
export const form: fc.Arbitrary<string> = fc
  .tuple(fc.constantFrom('b1', 'b1', 'b 1', 'x'), parts, frame)
  .map(([boundary, all, change]) => change(`${all.map((one) => one(boundary)).join('')}--${boundary}--\r\n`))

/** True for what was made here. */
export function isForm(body: string | null): boolean {
  return body !== null && /^(?:preamble)?(?:\r?\n)?--(?:b1|b 1|x)/.test(body)
}

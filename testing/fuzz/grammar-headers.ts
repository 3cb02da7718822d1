/** Header lines: those that fit the body, and then edits that smuggle, override or mislead (docs/contributing/threat-model.md). */
import fc from 'fast-check'
import { LISTED_ORIGIN } from './gate-under-test.ts'

export type Line = readonly [name: string, value: string]
export type LinesEdit = (lines: readonly Line[]) => readonly Line[]

export const HOST: Line = ['host', 'gateway.example']

/** A host that the runtime would put before the target as it stands (runtime-behaviour.md, "Targets and ids", last lines). */
// oxfmt-ignore
const hosts = ['x/api/copilotkit/threads/clear?', 'x/threads/clear#', 'x\\threads\\clear?', 'a@b', 'a b', '', 'evil.example:80', '[::1]', '../threads/clear?', 'x/..', '#', '?', 'gateway.example/', 'gateway.example%2f', 'é']

// oxfmt-ignore
const jsonTypes = ['application/json', 'application/json; charset=utf-8', 'application/json;charset=UTF-8', 'Application/JSON; charset="utf-8"', 'application/json ']
// oxfmt-ignore
const oddTypes = [
  'application/json; charset=utf-16', 'application/json; charset=utf-16le', 'application/json; charset=utf-7', 'application/json; charset=iso-8859-1', 'application/json; charset=utf-8; charset=utf-7',
  'application/json; charset', 'application/json; x=y', 'application/json;', 'application/json, text/plain', 'application/vnd.api+json', 'application/jsonp', 'application/jsonx', 'text/json', 'text/plain', 'text/plain; application/json', '',
  'application/x-www-form-urlencoded', 'application/octet-stream', 'multipart/form-data', 'multipart/form-data; boundary=b1', 'multipart/form-data; boundary="b 1"', 'multipart/form-data; boundary=application/json', 'multipart/form-data; boundary="application/json"', 'multipart/form-data; boundary="a;b"',
  'multipart/form-data; boundary=b1; charset=utf-16', 'multipart/mixed; boundary=b1', 'Multipart/Form-Data; Boundary=b1', 'application/json; boundary=b1',
]
// oxfmt-ignore
const additions: readonly Line[] = [
  ['content-encoding', 'gzip'], ['content-encoding', 'identity'], ['content-encoding', 'br'], ['content-encoding', 'Identity'], ['content-encoding', 'gzip, identity'], ['content-encoding', ''],
  ['transfer-encoding', 'chunked'], ['transfer-encoding', 'Chunked'], ['transfer-encoding', 'gzip, chunked'], ['transfer-encoding', 'identity'], ['transfer-encoding', 'xchunked'],
  ['expect', '100-continue'], ['expect', '100-Continue'], ['expect', '200-ok'], ['expect', '100-continue, x'],
  ['authorization', 'Bearer x, Bearer y'], ['authorization', 'Bearer x'], ['Authorization', 'Bearer y'], ['AUTHORIZATION', 'Basic eDp5'],
  ['host', 'evil.example'], ['Host', 'gateway.example'], ['origin', LISTED_ORIGIN], ['origin', 'https://evil.example'], ['Origin', 'null'], ['access-control-request-method', 'POST'],
  ['x-original-url', '/threads/clear'], ['x-rewrite-url', '/threads/clear'], ['x-http-method-override', 'DELETE'], ['x-method-override', 'POST'], ['x-forwarded-host', 'x/threads/clear?'], ['x-forwarded-prefix', '/threads/clear?'],
  ['x-forwarded-path', '/threads/clear'], ['forwarded', 'host="x/threads/clear?"'], ['x_original_url', '/threads/clear'], ['x-cpki-user-id', 'bob'], ['x-threadwarden-user', 'bob'], ['x-tenant', 'a'], ['x-tenant', 'b'], ['X-Server', 'no'],
  ['connection', 'upgrade'], ['upgrade', 'websocket'], ['upgrade', 'h2c'], ['connection', 'authorization, content-type'], ['te', 'trailers'], ['trailer', 'content-type'], ['http2-settings', 'AAMAAABk'],
  ['user-agent', 'a'], ['user-agent', 'b'], ['traceparent', '00-1'], ['traceparent', '00-2'], ['content-type', 'application/json'], ['Content-Type', 'text/plain'], ['range', 'bytes=0-1'], ['accept', 'text/html'],
]

const override = fc.tuple(
  fc.constantFrom('x-http-method-override', 'x-http-method', 'x-method-override'),
  fc.constantFrom('GET', 'POST', 'PATCH', 'DELETE'),
)

const edit: fc.Arbitrary<LinesEdit> = fc.oneof(
  {
    arbitrary: fc.constantFrom(...additions).map((line): LinesEdit => (lines) => [...lines, line]),
    weight: 6,
  },
  {
    arbitrary: fc.constantFrom(...additions).map((line): LinesEdit => (lines) => [line, ...lines]),
    weight: 3,
  },
  {
    arbitrary: fc.constantFrom(...hosts).map(
      (host): LinesEdit =>
        (lines) =>
          lines.map(([name, value]) => (name === 'host' ? [name, host] : [name, value])),
    ),
    weight: 3,
  },
  {
    arbitrary: override.map((line): LinesEdit => (lines) => [...lines, line]),
    weight: 2,
  },
  { arbitrary: fc.constant<LinesEdit>((lines) => lines.filter(([name]) => name !== 'host')), weight: 1 },
  { arbitrary: fc.constant<LinesEdit>((lines) => lines.filter(([name]) => name !== 'content-type')), weight: 1 },
  {
    arbitrary: fc.nat({ max: 3 }).map((index): LinesEdit => (lines) => [...lines, ...lines.slice(index, index + 1)]),
    weight: 2,
  },
)

/** Edits of the lines: mostly none. */
export const linesEdits = fc.oneof(
  { arbitrary: fc.constant<LinesEdit[]>([]), weight: 5 },
  { arbitrary: fc.array(edit, { minLength: 1, maxLength: 2 }), weight: 1 },
)

/** The content type of a JSON body, and of a recording: mostly one that fits. */
export const jsonType = fc.oneof(
  { arbitrary: fc.constantFrom(...jsonTypes), weight: 10 },
  { arbitrary: fc.constantFrom(...oddTypes), weight: 1 },
)
export const recordingType = fc.oneof(
  { arbitrary: fc.constantFrom('multipart/form-data; boundary=b1', 'multipart/form-data; boundary="b 1"'), weight: 5 },
  { arbitrary: fc.constantFrom(...oddTypes), weight: 1 },
)

/**
 * Envelopes of the single-route transport (runtime-behaviour.md, "Single-route transport"): what a client would write for a route, and then edits that
 * one reader takes for another operation, another thread or another body than the next.
 */
import fc from 'fast-check'
import type { Route } from '../../src/core/route/routes.ts'
import { EVIL_VALUES, jsonText, membersEdits, texts, utf8, type Member } from './grammar-body.ts'
import { isForm } from './grammar-form.ts'
import { agentId, anyId } from './grammar-ids.ts'
import { spelling } from './grammar-target.ts'

/** Writes the envelope of a route with this body: a character for each byte. */
export type WriteEnvelope = (route: Route, body: string | null) => string

const OWN_METHODS = ['info', 'agent/run', 'agent/connect', 'agent/suggest', 'agent/stop', 'transcribe', 'inspector/metadata']
const isTunnelled = ({ id }: Route): boolean => ![...OWN_METHODS, 'inspector/learning'].includes(id)

// oxfmt-ignore
const KEYS = [
  '"method"', '"method"', '"params"', '"params"', '"body"', '"body"', '"\\u006dethod"', '"meth\\u006fd"', '"p\\u0061rams"', '"\\u0062ody"', '"\\\\u006dethod"',
  '"Method"', '" method"', '"method\\u0000"', '"\ufeffmethod"', '"PARAMS"', '"params[agentId]"', '"params.threadId"', '"Body"', '"_method"',
  '"threadId"', '"agentId"', '"path"', '"httpMethod"', '"__proto__"', '"\\u005f_proto__"', '"constructor"', '"toString"', '"x"', '""', "'method'", 'method',
]
// oxfmt-ignore
const PARAM_KEYS = [
  '"agentId"', '"agentId"', '"threadId"', '"threadId"', '"path"', '"path"', '"httpMethod"', '"httpMethod"', '"\\u0061gentId"', '"thread\\u0049d"', '"p\\u0061th"', '"\\u0068ttpMethod"',
  '"AgentId"', '"threadid"', '" path"', '"httpmethod"', '"method"', '"query"', '"skillsPage"', '"insightsPage"', '"memoryId"', '"runId"', '"__proto__"', '"constructor"', '"x"', '""',
]
// oxfmt-ignore
const METHODS = [
  '"agent/run"', '"agent/stop"', '"agent/connect"', '"agent/suggest"', '"info"', '"transcribe"', '"resource/request"', '"inspector/learning"', '"inspector/metadata"',
  '"agent\\/run"', '"\\u0061gent/run"', '"resource\\/request"', '"agent/RUN"', '"Agent/run"', '" agent/run"', '"agent/run "', '"agent/run\\u0000"', '"agent/run/"', '"/agent/run"', '"agent//run"',
  '"agent\\\\run"', '"agent%2frun"', '"agent/../info"', '"agent/run?x"', '"\uff49nfo"', '"resource/Request"', '"resource"', '"request"', '"threads/list"', '"threads/clear"', '"threads/messages"',
  '"threads/update"', '"memories/list"', '"annotate"', '"cpk-debug-events"', '"constructor"', '"__proto__"', '"toString"', '["agent/run"]', '["info"]', '{"0":"info"}', '{"toString":"info"}',
  'null', '""', '0', '1', 'true', '[]', '{}',
]
// oxfmt-ignore
const PARAMS = [
  'null', '[]', '{}', '"x"', '1', 'true', '[{"agentId":"default","threadId":"t1"}]', '"{\\"agentId\\":\\"default\\"}"', '{"__proto__":{"agentId":"default","threadId":"victim-1"}}',
  '{"params":{"agentId":"default"}}', '{"agentId":"default","threadId":"victim-1","path":"/threads/clear","httpMethod":"POST"}', '{"path":"/threads/victim-1/messages","httpMethod":"GET"}',
]
// oxfmt-ignore
const HTTP_METHODS = [
  'get', 'Get', 'GET ', ' GET', 'post', 'Post', 'pOST', 'patch', 'delete', 'GET', 'POST', 'PATCH', 'DELETE', 'PUT', 'HEAD', 'OPTIONS', 'TRACE', 'CONNECT', 'QUERY', '', 'GET,POST', 'GET\0', 'POST\r\n', 'G\u00cbT',
  // Upper case of these is POST and DELETE to nobody but String.prototype.toUpperCase.
  'PO\u017fT', 'PO\ufb06', 'po\ufb05', '\uff30\uff2f\uff33\uff34',
]
// oxfmt-ignore
const PATH_STARTS = [
  'http://copilotkit.resource', '//copilotkit.resource', '/\\copilotkit.resource', '/\\', '/\t/evil.example', '\t', ' ', 'http:', '/api/copilotkit', '/resource/request', '/agent/default/run', '/info', '/..', '/%2e%2e', '.', '?', '#', '/junk', '/threads/t1',
]
// oxfmt-ignore
const PATHS = [
  '/', '', '//', '/info', '/agent/default/run', '/agent/default/stop/victim-1', '/cpk-debug-events', '/transcribe', '/inspector-learning?agentId=x', '/inspector-metadata', '/resource/request', '/threads/victim-1/messages',
  '/threads/t1/messages?agentId=default&agentId=remote', '/threads?agentId=default&agent%49d=remote', '/threads?limit=10&limit=20', '/threads/t1/messages#/state', '/threads/t1/../victim-1/state', '/threads/info', '/threads/t1/annotate',
]

type Change = (text: string) => string
type OfRoute = (route: Route) => string

const mostly = <Value>(usual: fc.Arbitrary<Value>, unusual: fc.Arbitrary<Value>, weight = 20): fc.Arbitrary<Value> =>
  fc.oneof({ arbitrary: usual, weight }, { arbitrary: unusual, weight: 1 })

/** How a text is written in JSON: these all say the same. */
const stringSpelling: fc.Arbitrary<Change> = mostly(
  fc.constant<Change>((text) => JSON.stringify(text)),
  fc.constantFrom<Change[]>(
    (text) => JSON.stringify(text).replaceAll('/', '\\/'),
    (text) => JSON.stringify(text).replaceAll('/', '\\u002f'),
    (text) => `"${text.replaceAll(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)}"`,
  ),
  6,
)

const evil = fc.constantFrom(...EVIL_VALUES)

const path: fc.Arbitrary<OfRoute> = fc.oneof(
  {
    arbitrary: spelling.map(
      (spell): OfRoute =>
        (route) =>
          spell(route, ''),
    ),
    weight: 24,
  },
  {
    arbitrary: fc.constantFrom(...PATHS).map(
      (text): OfRoute =>
        () =>
          text,
    ),
    weight: 2,
  },
  {
    arbitrary: fc.tuple(fc.constantFrom(...PATH_STARTS), spelling).map(
      ([start, spell]): OfRoute =>
        (route) =>
          `${start}${spell(route, '')}`,
    ),
    weight: 1,
  },
)

const httpMethod: fc.Arbitrary<OfRoute> = mostly(
  fc.constant<OfRoute>((route) => route.method),
  fc.constantFrom(...HTTP_METHODS).map(
    (text): OfRoute =>
      () =>
        text,
  ),
  8,
)

// What the runtime makes a query of; in a query of its own it would have been percent-encoded.
// oxfmt-ignore
const ODD_PAGES = [
  '0', '-0', '-1', '1.50', '1e2', '1e21', '1e400', 'null', 'true', '["1"]', '""', '" "', '"1\\n"', '"\\u0000"', '"\\ud800"', '"\\ud83d\\ude00"', '"1&agentId=x"', '"1#"', '"%31"', '"%ff"', '"1+1"', '"1=1"', '"\\u00e9"', '"../clear"',
]
const page = mostly(fc.constantFrom('1', '2', '"3"', '"10"'), fc.constantFrom(...ODD_PAGES), 3)

const params = fc
  .record({
    agentId,
    threadId: anyId,
    beside: mostly(fc.constant(false), fc.constant(true), 12),
    path,
    httpMethod,
    page,
    write: stringSpelling,
    given: fc.boolean(),
  })
  .map((parts) => (route: Route, tunnelled: boolean): readonly Member[] => {
    const { write } = parts
    if (tunnelled) {
      return [
        ['"path"', write(parts.path(route))],
        ['"httpMethod"', write(parts.httpMethod(route))],
      ]
    }
    const known: Readonly<Record<string, Member>> = {
      agentId: ['"agentId"', write(parts.agentId)],
      threadId: ['"threadId"', write(parts.threadId)],
      skillsPage: ['"skillsPage"', parts.page],
      insightsPage: ['"insightsPage"', parts.page],
    }
    const beside = parts.beside && !route.path.includes(':threadId') ? ['threadId'] : []
    const names = [...route.path.map((word) => word.slice(1)), ...beside, ...(parts.given ? route.query : [])]
    return names.map((name) => known[name]).filter((member) => member !== undefined)
  })

const recording = '{"audio":"GkUNCg==","mimeType":"audio/webm","filename":"a.webm"}'

const asText: Change = (bytes) => utf8(JSON.stringify(Buffer.from(bytes, 'latin1').toString('utf8')))

/** Other forms of a body; a JSON string of it is what the runtime would open once more. */
const bodyForm: fc.Arbitrary<Change> = mostly(
  fc.constant<Change>((text) => text),
  fc.constantFrom<Change[]>(
    asText,
    asText,
    (text) => asText(asText(text)),
    (text) => `[${text}]`,
    (text) => `{"body":${text}}`,
    (text) => `{"method":"resource/request","params":{"path":"/threads/victim-1/messages","httpMethod":"GET"},"body":${text}}`,
    (text) => `{"method":"agent/run","params":{"agentId":"default"},"threadId":"victim-1","body":${text}}`,
    () => '"{\\"threadId\\":\\"victim-1\\"}"',
    () => '{"threadId":"victim-1","messages":[]}',
    () => 'null',
    () => '""',
    () => '[]',
    () => '0',
    () => 'false',
  ),
  12,
)

const order: fc.Arbitrary<(members: readonly Member[]) => readonly Member[]> = mostly(
  fc.constant((members: readonly Member[]) => members),
  fc.constant((members: readonly Member[]) => members.toReversed()),
  5,
)

/** An envelope, mostly as a client writes it. */
export const envelope: fc.Arbitrary<WriteEnvelope> = fc
  .record({
    write: stringSpelling,
    // The tunnel reaches some routes only, and what it reaches has no method: the other way round is refused.
    swapped: mostly(fc.constant(false), fc.constant(true), 40),
    method: mostly(fc.constant(null), fc.constantFrom(...METHODS), 20),
    params,
    paramsEdits: membersEdits(
      fc.constantFrom(...PARAM_KEYS),
      fc.oneof(
        evil,
        anyId.map((id) => JSON.stringify(id)),
      ),
    ),
    otherParams: mostly(fc.constant(null), fc.constantFrom(...PARAMS), 30),
    bodyForm,
    order,
    edits: membersEdits(fc.constantFrom(...KEYS), fc.oneof(evil, fc.constantFrom(...METHODS), fc.constantFrom(...PARAMS)), 7),
    texts,
  })
  .map((parts): WriteEnvelope => (route, body) => {
    const tunnelled = isTunnelled(route) !== parts.swapped
    const own = parts.params(route, tunnelled)
    const text = isForm(body) ? recording : body
    const members: readonly Member[] = [
      ['"method"', parts.method ?? parts.write(tunnelled ? 'resource/request' : route.id)],
      ...(own.length === 0 && parts.paramsEdits.length === 0
        ? []
        : ([['"params"', utf8(parts.otherParams ?? jsonText(own, parts.paramsEdits))]] as const)),
      ...(text === null || text === '' ? [] : ([['"body"', parts.bodyForm(text)]] as const)),
    ]
    const envelopeText = jsonText(
      parts.order(members),
      parts.edits.map((edit) => (all) => edit(all).map(bytesOf)),
    )
    return parts.texts.reduce((bytes, change) => change(bytes), envelopeText)
  })

/** An edit may bring in characters that are no bytes; what is bytes already stays as it is. */
function bytesOf([key, value]: Member): Member {
  const written = (text: string): string => (/[\u0100-\uffff]/.test(text) ? utf8(text) : text)
  return [written(key), written(value)]
}

/** Where an envelope is sent: to the public path, or to what some reader takes for it. */
export const envelopeTarget: fc.Arbitrary<(publicPath: string) => string> = fc.oneof(
  { arbitrary: fc.constant((publicPath: string) => (publicPath === '' ? '/' : publicPath)), weight: 120 },
  {
    // oxfmt-ignore
    arbitrary: fc
      .constantFrom(
        '/', '//', '?', '?agentId=default', '?agentId=victim', '?skillsPage=2', '?x=1', '?limit=1&limit=2', '?path=/threads/clear', '#', '#x', '/.', '/..', '/x/..', '\\', ';', '%20', '%2f',
        '/agent/default/run', '/threads/t1/messages', '/threads/clear', '/info', '/junk', '/api/copilotkit', '/transcribe',
      )
      .map((end) => (publicPath: string) => `${publicPath}${end}`),
    weight: 15,
  },
  { arbitrary: fc.constant((publicPath: string) => publicPath.toUpperCase() || '/'), weight: 1 },
)

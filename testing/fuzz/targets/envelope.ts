/**
 * Envelopes of the single-route transport. What is admitted is what the real runtime makes of it: as it was written, in the envelope
 * that is written anew, and in the request that a runtime of many routes gets.
 */
import assert from 'node:assert/strict'
import { checkIds, type BodyPolicy } from '../../../src/core/route/bodies.ts'
import type { RouteDescriptor } from '../../../src/core/route/classify.ts'
import { admitEnvelope, openEnvelope, writeEnvelope, type Envelope } from '../../../src/core/route/envelope.ts'
import { upstreamTarget } from '../../../src/core/route/transport.ts'
import { isObject, makeJsonReader, type JsonObject, type JsonReading } from '../../../src/core/json/read.ts'
import { differences, isMisread, SENT, WRITTEN } from '../differences.ts'
import { hush } from '../hush.ts'
import { makeJudge } from '../judge.ts'
import type { Written } from '../message.ts'
import { shapeFaults } from '../sent-shape.ts'
import { OPEN_BODIES, passingOf } from '../../support/open-bodies.ts'

// oxfmt-ignore
export const words = [
  '{"method":"', '"method":"info"', '"params":{', '"body":{', '"threadId":"t1"', '"agentId":"default"', 'agent/run', 'agent/connect', 'agent/suggest',
  'agent/stop', 'info', 'transcribe', 'inspector/metadata', 'inspector/learning', 'resource/request', '"path":"/threads/t1/messages"',
  '"path":"/threads"', '"path":"/annotate"', '"path":"/memories/m1"', '"path":"/threads/clear"', '"httpMethod":"GET"', '"httpMethod":"POST"',
  '"httpMethod":"PATCH"', '"httpMethod":"DELETE"', '"skillsPage":2', '"insightsPage":"3"', '?agentId=', '"runId":"r1"', '"audio":"GkU="',
  '"mimeType":"audio/webm"', '"state":{}', '"forwardedProps":{}', '"messages":[]', '"tools":[]', '"context":[]', '%2F', '..', '\\\\', '\\u', '__proto__', 'null',
]

// oxfmt-ignore
export const seeds = [
  '{"method":"info"}', '{"method":"agent/run","params":{"agentId":"default"},"body":{"threadId":"t1"}}', '{"method":"agent/run","params":{"agentId":"default","threadId":"t1"},"body":{"threadId":"t2"}}',
  '{"method":"agent/run","params":{"agentId":"default"},"body":{"threadId":" t1"}}', '{"method":"agent/run","params":{"agentId":"default"},"body":{"threadId":"123E4567-E89B-12D3-A456-426614174000"}}', '{"method":"agent/run","params":{"agentId":"__proto__"},"body":{"threadId":"t1"}}',
  '{"method":"agent/run","params":{"agentId":"default"},"body":"{\\"threadId\\":\\"t1\\"}"}', '{"method":"agent/run","params":{"agentId":"default"},"body":{"threadId":"t1","method":"info","userId":"x","sourceThreadIds":["t2"]}}',
  '{"method":"agent/connect","params":{"agentId":"default"},"body":{"threadId":"t1","lastSeenEventId":"x"}}', '{"method":"agent/stop","params":{"agentId":"default","threadId":"t1"}}', '{"method":"agent/stop","params":{"agentId":"default","threadId":"t1"},"body":{"runId":"../x"}}', '{"method":"agent/stop","params":{"agentId":"default","threadId":"t1"},"body":null}',
  '{"method":"inspector/learning","params":{"agentId":"default","skillsPage":2,"insightsPage":"\\ud800"}}', '{"method":"inspector/learning","params":{"skillsPage":1e21,"insightsPage":"+%2"}}', '{"method":"transcribe","body":{"audio":"GkU=","mimeType":"audio/webm"}}',
  '{"method":"resource/request","params":{"path":"/threads?agentId=default&agent%49d=x","httpMethod":"GET"}}', '{"method":"resource/request","params":{"path":"/threads/t1/messages","httpMethod":"GET"},"body":null}', '{"method":"resource/request","params":{"path":"/threads/t1/../t2/messages","httpMethod":"GET"}}',
  '{"method":"resource/request","params":{"path":"/threads/t1","httpMethod":"PATCH"},"body":{"agentId":"default","name":"x","archived":true}}', '{"method":"resource/request","params":{"path":"/annotate","httpMethod":"POST"},"body":{"threadId":"t1","type":"x"}}', '{"method":"resource/request","params":{"path":"/info","httpMethod":"GET"}}', '{"method":"resource/request","params":{"path":"/agent/default/run","httpMethod":"POST"},"body":{"threadId":"t1"}}',
  '{"method":"resource/request","params":{"path":"/threadwarden/threads/t1/grants","httpMethod":"GET"}}', '{"method":"resource/request","params":{"path":"//evil.example/threads/t1/state","httpMethod":"GET"}}', '{"method":"resource/request","params":{"path":"/memories/m1","httpMethod":"delete"}}', '{"method":"cpk-debug-events"}', '{"method":["info"]}', '{"method":"agent/run","params":{"agentId":"default"},"body":{"threadId":"t1","forwardedProps":{"command__":{"resume":3}}}}', '{"method":"info","\\u006dethod":"inspector/metadata"}',
]

hush()

const BASE = '/api/copilotkit'
const judges = {
  'single-route': makeJudge({ adapter: 'node', transport: 'single-route', basePath: BASE }),
  'multi-route': makeJudge({ adapter: 'node', transport: 'multi-route', basePath: BASE }),
} as const
const OPEN: BodyPolicy = { ...OPEN_BODIES, forwardedProps: new Set(['tenant']) }

export async function examine(input: Buffer): Promise<void> {
  const reading = await read(input)
  if (reading.outcome === 'refused') return
  const envelope = admitEnvelope(reading.value, input.length, { admit: () => null, mostOf: () => input.length })
  if (envelope.outcome === 'refused') return
  const { descriptor, value } = bodyOf(envelope)
  if (descriptor === null) return

  const post = (body: string | Buffer): Written => requestOf('POST', BASE, Buffer.from(body as string))
  const asWritten = await judges['single-route'](post(input))
  assert.deepEqual(differences(descriptor, asWritten, WRITTEN, isMisread(input)), [], 'as it was written')

  const body = value === undefined ? undefined : passingOf(descriptor.route, value, OPEN).body
  const written = writeEnvelope(descriptor, descriptor.query, upstreamTarget('', descriptor))
  const reopened = openEnvelope(body === undefined ? { ...written } : { ...written, body })
  assert.equal(reopened.outcome, 'opened', 'what is written is an envelope')
  // The answers to interrupts are those that the caller sent, also in fields that are dropped.
  const { answers } = descriptor
  const rewritten = bodyOf(reopened).descriptor
  assert.deepEqual(rewritten && { ...rewritten, answers }, { ...descriptor, answers }, 'the same envelope')
  const sent = post(JSON.stringify({ ...written, body }))
  assert.deepEqual(shapeFaults(sent, 'single-route', BASE), [])
  assert.deepEqual(differences(descriptor, await judges['single-route'](sent), SENT), [], 'written anew')
  assert.equal(typeof (await judges['multi-route'](sent)), 'number', 'it means nothing to a runtime of many routes')

  const text = body === undefined ? null : Buffer.from(JSON.stringify(body))
  const bridged = requestOf(descriptor.route.method, upstreamTarget(BASE, descriptor), text)
  assert.deepEqual(differences(descriptor, await judges['multi-route'](bridged), SENT), [], 'for a runtime of many routes')
  assert.equal(typeof (await judges['single-route'](bridged)), 'number', 'it means nothing to a runtime of one route')
}

async function read(input: Buffer): Promise<JsonReading> {
  const reader = makeJsonReader()
  return reader.push(input) ?? reader.end()
}

/** The request with what its body says; no descriptor where the body is refused. */
function bodyOf({ descriptor, body }: Envelope): { readonly descriptor: RouteDescriptor | null; readonly value?: JsonObject } {
  const { kind } = descriptor.route.body
  if (body === undefined) {
    const isOptional = kind === 'none' || (kind === 'json' && descriptor.route.body.optional === true)
    return { descriptor: isOptional ? descriptor : null }
  }
  if (!isObject(body)) return { descriptor: null }
  const checked = checkIds(descriptor, body)
  return checked.outcome === 'refused' ? { descriptor: null } : { descriptor: checked.descriptor, value: body }
}

function requestOf(method: string, target: string, body: Buffer | null): Written {
  const type = body === null ? [] : ([['content-type', 'application/json']] as const)
  return { method, target, headers: [['host', 'runtime.internal'], ...type], body }
}

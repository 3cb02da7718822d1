/** The property: of the body of a run, exactly what AG-UI has leaves the gateway (testing/fuzz/run-shape.ts), at every level. */
import { isDeepStrictEqual } from 'node:util'
import { bodyBytes, pairOf, PLACES, type Case } from './case.ts'
import type { Finding } from './tally.ts'
import { makeGateUnderTest } from './gate-under-test.ts'
import { memberOf } from './handed-on.ts'
import { print } from './differences.ts'
import { closedRun } from './run-shape.ts'

const gates = new Map<string, ReturnType<typeof makeGateUnderTest>>()

export async function examineRun(one: Case): Promise<Finding> {
  const outcome = await gateOf(one)(one)
  const [sent] = outcome.sent
  return {
    outcome: sent === undefined ? outcome.reason : (outcome.descriptor?.route.id ?? outcome.reason),
    group: pairOf(one),
    permitted: sent !== undefined,
    asWritten: undefined,
    faults: sent === undefined ? [`refused: ${outcome.reason}`] : faultsIn(one, JSON.parse(String(Buffer.from(sent.body ?? [])))),
  }
}

function gateOf({ place, upstream }: Case): ReturnType<typeof makeGateUnderTest> {
  const key = `${place} ${upstream}`
  const gate = gates.get(key) ?? makeGateUnderTest(place, upstream)
  gates.set(key, gate)
  return gate
}

function faultsIn(one: Case, message: unknown): readonly string[] {
  const written: unknown = JSON.parse(String(bodyBytes(one)))
  const isEnvelope = one.target === PLACES[one.place].publicPath
  const { protocolVersion, ...others } = closedRun(isEnvelope ? memberOf(written, 'body') : written)
  const expected = protocolVersion === '1.0' ? { ...others, protocolVersion } : others
  const sent = one.upstream === 'single-route' ? memberOf(message, 'body') : message
  return isDeepStrictEqual(sent, expected) ? [] : [`sent ${print(sent)}, expected ${print(expected)}`]
}

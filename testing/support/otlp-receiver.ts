/** A receiver of traces: decodes what comes with the code that is generated of the protocol's own definitions. */
/// <reference path="./libraries.d.ts" />
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { Test } from 'tap'
import root from 'otlp-messages/build/src/generated/root.js'
import { until } from './until.ts'

export interface ReceivedSpan {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  /** '' for none. */
  readonly parent: string
  readonly traceState: string
  readonly kind: 'server' | 'client' | 'internal'
  readonly attributes: Readonly<Record<string, unknown>>
  readonly isError: boolean
  /** In milliseconds. */
  readonly took: number
}

export interface OtlpReceiver {
  /** The base of `/v1/traces`. */
  readonly url: string
  readonly spans: readonly ReceivedSpan[]
  readonly resources: readonly Readonly<Record<string, unknown>>[]
  readonly headers: readonly IncomingHttpHeaders[]
  /** All bytes as they came. */
  readonly bytes: () => Buffer
  /** Waits for the spans of a trace, the request's own among them, and gives them with the request's first. */
  readonly trace: (traceId: string) => Promise<readonly ReceivedSpan[]>
  /** From now on nothing is answered. */
  readonly hang: () => void
}

const KINDS: Readonly<Record<number, ReceivedSpan['kind']>> = { 1: 'internal', 2: 'server', 3: 'client' }

const hex = (bytes: Uint8Array | null | undefined): string => Buffer.from(bytes ?? []).toString('hex')

type KeyValues = readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[]

const attributesOf = (list: KeyValues): Readonly<Record<string, unknown>> =>
  Object.fromEntries(list.map(({ key, value }) => [key, Object.values(value)[0]]))

export async function startOtlpReceiver(t: Pick<Test, 'teardown'>): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = []
  const resources: Readonly<Record<string, unknown>>[] = []
  const headers: IncomingHttpHeaders[] = []
  const pieces: Buffer[] = []
  let hangs = false
  const { ExportTraceServiceRequest: Messages } = root.opentelemetry.proto.collector.trace.v1
  const take = (bytes: Buffer): void => {
    const said = Messages.toObject(Messages.decode(bytes), { longs: Number, defaults: true }) as Said
    for (const { resource, scopeSpans } of said.resourceSpans) {
      resources.push(attributesOf(resource.attributes))
      for (const span of scopeSpans.flatMap((scope) => scope.spans)) {
        spans.push({
          name: span.name,
          traceId: hex(span.traceId),
          spanId: hex(span.spanId),
          parent: hex(span.parentSpanId),
          traceState: span.traceState,
          kind: KINDS[span.kind] ?? 'internal',
          attributes: attributesOf(span.attributes),
          isError: span.status?.code === 2,
          took: (span.endTimeUnixNano - span.startTimeUnixNano) / 1e6,
        })
      }
    }
  }
  const server = createServer((request, response) => {
    void buffer(request).then((bytes) => {
      if (hangs) return
      headers.push(request.headers)
      pieces.push(bytes)
      if (request.url !== '/v1/traces') return void response.writeHead(404).end()
      take(bytes)
      response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    resources,
    headers,
    bytes: () => Buffer.concat(pieces),
    async trace(traceId) {
      const own = (): readonly ReceivedSpan[] => spans.filter((span) => span.traceId === traceId)
      await until(() => own().some(({ kind }) => kind === 'server'))
      return own().toSorted((a, b) => Number(b.kind === 'server') - Number(a.kind === 'server'))
    },
    hang: () => void (hangs = true),
  }
}

interface Said {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: KeyValues }
    readonly scopeSpans: readonly { readonly spans: readonly SaidSpan[] }[]
  }[]
}

interface SaidSpan {
  readonly name: string
  readonly traceId: Uint8Array
  readonly spanId: Uint8Array
  readonly parentSpanId: Uint8Array
  readonly traceState: string
  readonly kind: number
  readonly attributes: KeyValues
  readonly status: { readonly code: number } | null
  readonly startTimeUnixNano: number
  readonly endTimeUnixNano: number
}

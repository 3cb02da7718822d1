/** What the tests use of a library whose own types do not say it. */
declare module 'otlp-messages/build/src/generated/root.js' {
  /** Of the protocol's definitions: https://github.com/open-telemetry/opentelemetry-proto. */
  interface MessageType {
    decode(bytes: Uint8Array): object
    toObject(message: object, options: { readonly longs: NumberConstructor; readonly defaults: boolean }): unknown
  }
  const root: {
    readonly opentelemetry: {
      readonly proto: {
        readonly collector: { readonly trace: { readonly v1: { readonly ExportTraceServiceRequest: MessageType } } }
      }
    }
  }
  export default root
}

/** Documents of an issuer: its metadata and its key set. */

export type Document = Readonly<Record<string, unknown>>

export interface DocumentSource {
  allowed(uri: string): boolean
  /** Must follow no redirect. */
  get(uri: string): Promise<Document>
}

export const MAX_DOCUMENT_BYTES = 512 * 1024
export const FETCH_TIMEOUT_MS = 5000

/** @param body decompressed, so that the limit applies to the bytes in memory */
export async function readDocument(uri: string, body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Document> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > maxBytes) throw new Error(`${uri} is larger than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  let value: unknown
  try {
    value = JSON.parse(Buffer.concat(chunks).toString('utf8'))
  } catch {
    // The parser's error quotes the text, which may repeat a token or a secret.
    value = null
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error(`${uri} is no JSON object`)
  return value as Document
}

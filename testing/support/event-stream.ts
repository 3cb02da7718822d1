/** A run whose stream is read as it comes. */
import type { Gated } from './gated.ts'
import { head, openRaw, type RawConnection } from './raw.ts'
import { runInput } from './client.ts'

/** Starts a run of alice's on a connection of its own; what comes is read from it. */
export async function openRun({ gateway, alice }: Gated, threadId = 't1'): Promise<RawConnection> {
  const connection = await openRaw(gateway.url)
  const body = JSON.stringify(runInput(threadId))
  connection.write(
    head(
      'POST /api/copilotkit/agent/default/run HTTP/1.1',
      'Host: a',
      `Authorization: Bearer ${alice}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    ) + body,
  )
  return connection
}

/** The body of a chunked answer, as far as it came. */
export function unchunked(text: string): string {
  let rest = text.slice(text.indexOf('\r\n\r\n') + 4)
  let body = ''
  for (;;) {
    const line = rest.indexOf('\r\n')
    const size = line === -1 ? Number.NaN : Number.parseInt(rest.slice(0, line), 16)
    if (Number.isNaN(size) || size === 0) return body
    body += rest.slice(line + 2, line + 2 + size)
    rest = rest.slice(line + 2 + size + 2)
  }
}

/** Dictation as React's client sends it: the core itself knows nothing of it but its switch. */
import { Buffer } from 'node:buffer'
import type { CopilotKitCore } from '../../examples/client.ts'

/** Sends a sound: as a form to a route of its own, or in base64 inside an envelope. */
export async function transcribe(
  core: CopilotKitCore,
  sound: Blob,
): Promise<{ readonly status: number; readonly json: unknown }> {
  const url = core.runtimeUrl ?? ''
  const filename = 'recording.webm'
  const headers = { ...core.headers }
  const answer = await (core.runtimeTransport === 'single' ? inEnvelope() : asForm())
  return { status: answer.status, json: await answer.json() }

  async function inEnvelope(): Promise<Response> {
    const audio = Buffer.from(await sound.arrayBuffer()).toString('base64')
    return fetch(url, {
      method: 'POST',
      headers: { ...headers, 'Content-Type': 'application/json' },
      body: JSON.stringify({ method: 'transcribe', body: { audio, mimeType: sound.type, filename } }),
    })
  }

  function asForm(): Promise<Response> {
    const form = new FormData()
    form.append('audio', sound, filename)
    return fetch(`${url}/transcribe`, { method: 'POST', headers, body: form })
  }
}

/**
 * Event streams on their way to callers: passed on event by event, kept alive while the upstream is silent, ended by
 * rule with an event that the client can see (design "Streams").
 */
import type { ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { eventBoundary } from '../core/event-boundary.ts'
import type { Metrics } from '../observe/metrics.ts'

/** The streams that are open now. */
export interface OpenStreams {
  /**
   * Passes an event stream on. The head has been written.
   * @param body the upstream's answer
   * @param response the caller's
   * @param textual false for binary streams, into which nothing is ever put
   */
  pass(body: Readable, response: ServerResponse, textual: boolean): void
  count(): number
  /** Ends all of them, each with a RUN_ERROR event. */
  endAll(message: string, code: string): void
}

/** A comment: clients skip it, proxies on the way see that the connection lives. */
const KEEP_ALIVE = ': keep-alive\n\n'

/**
 * Makes the register of open streams.
 * @param keepAlive milliseconds of silence before a comment is sent; 0 for none
 */
export function makeOpenStreams(keepAlive: number, metrics: Metrics): OpenStreams {
  const ends = new Set<(message: string, code: string) => void>()

  const pass = (body: Readable, response: ServerResponse, textual: boolean): void => {
    const boundary = eventBoundary()
    metrics.streamOpened()
    const keep = (): void => {
      if (boundary.between() && !response.writableEnded) response.write(KEEP_ALIVE)
    }
    const timer = textual && keepAlive > 0 ? setInterval(keep, keepAlive) : undefined
    const end = (message: string, code: string): void => {
      clearInterval(timer)
      if (response.writableEnded) return
      if (textual)
        response.write(`${boundary.between() ? '' : '\n\n'}data: ${JSON.stringify({ type: 'RUN_ERROR', message, code })}\n\n`)
      response.end()
      body.destroy()
    }
    ends.add(end)
    body.on('data', (chunk: Buffer) => {
      boundary.see(chunk)
      timer?.refresh()
      // A slow reader holds back its own stream only.
      if (!response.write(chunk)) body.pause()
    })
    response.on('drain', () => body.resume())
    body.on('end', () => {
      clearInterval(timer)
      response.end()
    })
    // A caller whose connection fails is a closed one: no error of theirs may reach the process.
    response.on('error', () => response.destroy())
    // The upstream broke off: the caller must see a broken answer, not a short one.
    body.on('error', () => response.destroy())
    const closed = (): void => {
      clearInterval(timer)
      ends.delete(end)
      body.destroy()
      metrics.streamClosed()
    }
    if (response.destroyed) closed()
    else response.once('close', closed)
  }

  return {
    pass,
    count: () => ends.size,
    endAll: (message, code) => {
      for (const end of [...ends]) end(message, code)
    },
  }
}

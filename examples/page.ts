/** Serves a built page of `web/`, with the addresses of the gateway and the issuer. */
/// <reference path="./libraries.d.ts" />
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import express from 'express'
import { listen, stop } from './http.ts'
import { CLIENT } from './sign-in.ts'

const BUILT = fileURLToPath(new URL('web/dist', import.meta.url))

/** A CopilotKit chat, and a chat with a graph of a LangGraph server. */
export type Document = 'index.html' | 'langgraph.html'

/** The addresses that the page uses. */
export interface Whereabouts {
  /** The public base of the gateway's routes for the upstream. */
  readonly runtimeUrl: string
  readonly issuer: string
}

export interface Page {
  /** Its origin, which `cors.origins` of the gateway must list. */
  readonly url: string
  close(): Promise<void>
}

/**
 * Serves it on 127.0.0.1 only: the issuer accepts its client from there.
 * @param whereabouts called at each load of the page, because they may be known later than the page's origin
 * @param document which page, by default the CopilotKit chat
 * @throws if the page is not built
 */
export async function startPage(whereabouts: () => Whereabouts, document: Document = 'index.html'): Promise<Page> {
  if (!existsSync(BUILT)) throw new Error('the page is not built: run npm run build:web')
  const application = express()
  application.get('/settings.json', (_request, response) => response.json({ ...whereabouts(), clientId: CLIENT.id }))
  application.use(express.static(BUILT, { index: document }))
  application.get('/callback', (_request, response) => response.sendFile(document, { root: BUILT }))
  const server = createServer(application)
  const { origin } = await listen(server, 0, '127.0.0.1')
  return { url: origin, close: () => stop(server) }
}

/** The real page in headless Chromium, the real gateway, runtime and issuer, and people at their windows. */
import { mkdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type BrowserContext, chromium, type Page as Window } from 'playwright-core'
import type { Test } from 'tap'
import { startPage } from '../../examples/page.ts'
import { OPERATOR } from '../../testing/support/sharing.ts'
import { startStack, type Stack } from '../../testing/support/stack.ts'

/** Where Debian puts it. */
export const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium'

/** Gives a page on a busy machine time for what it is to show: playwright's own half a minute is too short there. */
export function patient<Made extends BrowserContext | Window>(made: Made): Made {
  made.setDefaultTimeout(120_000)
  return made
}

/** It is to show this page, and to speak to nobody else. */
export const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** Where the pictures of the docs are written, with `THREADWARDEN_SCREENSHOTS=yes npm run test:browser`. */
const PICTURES = fileURLToPath(new URL('../../docs/images', import.meta.url))

/** A window in which somebody is signed in. */
export interface Seat {
  readonly window: Window
  /** Writes a message and sends it. */
  readonly say: (text: string) => Promise<void>
  /** Waits until the page shows a text of the agent's. */
  readonly hears: (text: string | RegExp) => Promise<void>
  /** All that the chat shows. */
  readonly chat: () => Promise<string>
  /** What went wrong so far, as the client told the page. */
  readonly errors: () => Promise<readonly string[]>
  /** Waits until something of it fits. */
  readonly fails: (what: RegExp) => Promise<void>
  /** Takes a picture for the docs, where they are wanted. */
  readonly picture: (name: string) => Promise<void>
}

/** Everything. */
export interface Scene {
  readonly stack: Stack
  /** The page's origin. */
  readonly url: string
  /** Opens a window of its own until the test `t` ends, and signs somebody in there: pages left open slow those that follow. */
  readonly seat: (t: Test, who: Person, path?: string) => Promise<Seat>
  /** Does on the issuer's pages what somebody does who has signed in there before. */
  readonly approve: (window: Window) => Promise<void>
}

export type Person = 'alice' | 'bob'

/** How people are called on the issuer's page. */
const BUTTONS: Readonly<Record<Person, RegExp>> = { alice: /^Alice/, bob: /^Bob/ }

/** Starts it. */
export async function startScene(t: Test): Promise<Scene> {
  let stack: Stack | undefined
  const page = await startPage(() => ({ runtimeUrl: stack?.base ?? '', issuer: stack?.issuer ?? '' }))
  t.teardown(() => page.close())
  const started = (stack = await startStack(t, {
    deployment: { name: 'frontend', environment: { PAGE_ORIGIN: page.url, ADMIN_CREDENTIAL: OPERATOR } },
  }))
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ARGUMENTS })
  t.teardown(() => browser.close())
  return {
    stack: started,
    url: page.url,
    async seat(t, who, path = '/') {
      const context = patient(await browser.newContext({ viewport: { width: 1200, height: 720 } }))
      t.teardown(() => context.close())
      const window = await context.newPage()
      await window.goto(`${page.url}${path}`)
      await window.getByRole('button', { name: 'Sign in' }).click()
      await window.getByRole('button', { name: BUTTONS[who] }).click()
      await approve(window)
      await window.getByTestId('who').getByText(who).waitFor()
      return seatAt(window)
    },
    approve,
  }
}

async function approve(window: Window): Promise<void> {
  await window.getByRole('button', { name: 'Allow' }).click()
}

function seatAt(window: Window): Seat {
  const errors = () => window.getByTestId('errors').getByRole('listitem').allTextContents()
  return {
    window,
    async say(text) {
      await window.getByTestId('copilot-chat-textarea').fill(text)
      await window.getByTestId('copilot-send-button').click()
    },
    hears: (text) => window.getByTestId('copilot-assistant-message').getByText(text).first().waitFor(),
    chat: async () => (await window.getByTestId('copilot-chat').first().textContent()) ?? '',
    errors,
    fails: (what) => window.getByTestId('errors').getByText(what).first().waitFor(),
    async picture(name) {
      if (process.env['THREADWARDEN_SCREENSHOTS'] !== 'yes') return
      mkdirSync(PICTURES, { recursive: true })
      await window.screenshot({ path: `${PICTURES}/${name}.png` })
    },
  }
}

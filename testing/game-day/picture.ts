/** What an operator sees of a fault in the console, as a picture. */
import { chromium } from 'playwright-core'

/** Where Debian puts it. */
const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium'

/** Takes a picture of the view of the console that shows a fault. */
export async function picture(admin: string, credential: string, view: 'overview' | 'decisions', path: string): Promise<void> {
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] })
  try {
    const page = await browser.newPage({ viewport: { width: 1100, height: 390 } })
    await page.goto(`${admin}/console`)
    await page.getByLabel('Admin credential').fill(credential)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('heading', { name: 'Health' }).waitFor()
    if (view === 'decisions') {
      await page.goto(`${admin}/console#decisions`)
      await page.getByRole('row').nth(1).waitFor()
    }
    await page.screenshot({ path })
  } finally {
    await browser.close()
  }
}

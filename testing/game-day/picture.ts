/** What an operator sees of a fault in the console, as a picture. */
import { chromium } from 'playwright-core'

/** Where Debian puts it. */
const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium'

/** The views of a gateway in trouble, side by side in one picture. */
export async function picture(admin: string, credential: string, file: string): Promise<void> {
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] })
  try {
    const page = await browser.newPage({ viewport: { width: 1100, height: 620 } })
    await page.goto(`${admin}/console`)
    await page.getByLabel('Admin credential').fill(credential)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('heading', { name: 'Health' }).waitFor()
    await page.screenshot({ path: `${file}-overview.png` })
    await page.goto(`${admin}/console#decisions`)
    await page.getByRole('heading', { name: 'Decisions', exact: true }).waitFor()
    // A fault may be such that no request arrives.
    await page.getByRole('row').nth(1).or(page.getByText('No recent decision matches.')).waitFor()
    await page.screenshot({ path: `${file}-decisions.png` })
  } finally {
    await browser.close()
  }
}

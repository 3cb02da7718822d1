/** The page: signs people in, and gives them a chat behind the gateway. */
import { createRoot } from 'react-dom/client'
import '@copilotkit/react-core/v2/styles.css'
import './page.css'
import { Page } from './page.tsx'
import { openSession } from './session.ts'
import { readSettings } from './settings.ts'

const settings = await readSettings()
const session = await openSession(settings)
const root = document.getElementById('page')
if (root === null) throw new Error('the page has no place')
createRoot(root).render(<Page settings={settings} session={session} />)

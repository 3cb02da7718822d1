/** A chat with a graph of a LangGraph server behind the gateway, with sign-in. */
import { createRoot } from 'react-dom/client'
import '../page.css'
import { openSession } from '../session.ts'
import { readSettings } from '../settings.ts'
import { GraphPage } from './page.tsx'

const settings = await readSettings()
const session = await openSession(settings)
const root = document.getElementById('page')
if (root === null) throw new Error('the document has no element for the page')
createRoot(root).render(<GraphPage settings={settings} session={session} />)

/** VitePress's own theme, with diagrams. */
import type { Theme } from 'vitepress'
import DefaultTheme from 'vitepress/theme'
import { Mermaid } from './mermaid.ts'
import './site.css'

export default {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    app.component('Mermaid', Mermaid)
  },
} satisfies Theme

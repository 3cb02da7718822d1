/** A diagram, drawn in the browser and again when the reader switches between light and dark. */
import { useData } from 'vitepress'
import { defineComponent, h, onMounted, ref, watch } from 'vue'

let drawn = 0

export const Mermaid = defineComponent({
  props: { source: { type: String, required: true } },
  setup(props) {
    const { isDark } = useData()
    const source = decodeURIComponent(props.source)
    const svg = ref('')
    const draw = async (): Promise<void> => {
      // Its own chunk, which only pages with diagrams load.
      const { default: mermaid } = await import('mermaid')
      mermaid.initialize({
        startOnLoad: false,
        securityLevel: 'strict',
        theme: isDark.value ? 'dark' : 'neutral',
        fontFamily: 'inherit',
      })
      await document.fonts.ready
      drawn += 1
      svg.value = (await mermaid.render(`diagram-${drawn}`, source)).svg
    }
    onMounted(draw)
    watch(isDark, draw)
    return () =>
      svg.value === ''
        ? h('pre', { class: 'mermaid-source' }, source)
        : h('div', { class: 'mermaid-diagram', innerHTML: svg.value })
  },
})

import react from '@vitejs/plugin-react'

/** @type {import('vite').UserConfig} */
export default {
  plugins: [react()],
  build: {
    target: 'es2022',
    // What the chat brings along is large; nobody is to be warned of it at each build.
    chunkSizeWarningLimit: 20_000,
    rollupOptions: { input: ['index.html', 'langgraph.html'] },
  },
}

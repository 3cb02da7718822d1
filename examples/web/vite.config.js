import react from '@vitejs/plugin-react'

/** @type {import('vite').UserConfig} */
export default {
  plugins: [react()],
  // What the chat brings along is large; nobody is to be warned of it at each build.
  build: { target: 'es2022', chunkSizeWarningLimit: 20_000 },
}

import type { NextConfig } from 'next'

const config: NextConfig = {
  // Both load files of their own packages at run time, so Next.js must not bundle them.
  serverExternalPackages: ['@copilotkit/runtime', 'threadwarden'],
}

export default config

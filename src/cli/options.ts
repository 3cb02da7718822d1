/** Options that several commands share, and short forms to declare others. */
export function flag(help: string) {
  return { type: 'boolean', default: false, help } as const
}

export function value(placeholder: string, help: string) {
  return { type: 'string', placeholder, help } as const
}

/** @param shape what the command prints as JSON */
export function jsonFlag(shape: string, note = '') {
  return flag(`prints ${shape} on stdout${note}`)
}

export const CONFIG = value('FILE', 'the configuration (YAML or JSON)')
export const TOKEN_FILE = value('FILE', "a file with the caller's token")
export const QUIET = flag('hides the progress')
export const THREAD_SCOPE = value('KEY', "the thread's upstream, by its key under upstreams or agents (default: upstream)")
export const SCOPE_FILTER = value(
  'KEY',
  "only threads of the upstream with this key under upstreams or agents, '' for upstream (default: all)",
)
export const WITH_SCOPE = ', with "scope" if the thread is not of upstream'

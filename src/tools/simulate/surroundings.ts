/** What a configuration says that a policy beside its own has to fit, too. */
import type { Config } from '../../config/schema.ts'
import type { PolicySurroundings } from '../../policy/faults.ts'

/** Takes it from a configuration that was loaded. */
export function surroundingsOf({ authentication, forwardHeaders }: Config): PolicySurroundings {
  return { issuers: Object.keys(authentication.issuers), forwardHeaders, mode: authentication.mode }
}

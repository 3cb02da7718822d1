/** What a configuration says that a second policy has to fit, too. */
import type { Config } from '../../config/schema.ts'
import type { PolicySurroundings } from '../../policy/faults.ts'

export function surroundingsOf({ authentication, forwardHeaders }: Config): PolicySurroundings {
  return { issuers: Object.keys(authentication.issuers), forwardHeaders, mode: authentication.mode }
}

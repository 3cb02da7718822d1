/** The access of a gateway in which nothing changes while requests are under way. */
import type { Access } from '../../src/http/pipeline/access.ts'

/** Nothing changes, and no other configuration comes. */
export const STEADY_ACCESS: Access = {
  mark: () => 0,
  changedSince: () => false,
  isReplaced: () => false,
  refusal: () => null,
  hidden: () => null,
  opened: () => {},
}

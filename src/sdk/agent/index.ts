/**
 * `threadwarden/agent`: for an agent or a runtime that wants to know who is asking (docs/agents.md). It knows nothing of the
 * gateway; besides Node it needs fast-jwt alone, with which the gateway verifies tokens, too.
 */
export { KeysUnavailable, NotAuthenticated, PermissionDenied, type NotAuthenticatedCode } from './errors.ts'
export type { HeadersLike } from './headers.ts'
export type { Algorithm } from './key.ts'
export type { Fetch } from './key-source.ts'
export { expectThread, hasPermission, requirePermission, requireRole } from './permissions.ts'
export type { AgentUser, ClaimPointers } from './user.ts'
export {
  ASSERTION_HEADER,
  makeAssertionVerifier,
  makeVerifier,
  type AssertionVerifierOptions,
  type CommonOptions,
  type KeyOptions,
  type Verify,
  type VerifierOptions,
} from './verifier.ts'

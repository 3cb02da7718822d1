/** `threadwarden/agent` (docs/how-to/connect/agents.md): identifies the user inside an agent. Its only package is fast-jwt. */
export { KeysUnavailable, NotAuthenticated, PermissionDenied, type NotAuthenticatedCode } from './errors.ts'
export type { HeadersLike } from './token.ts'
export type { PublicKeyAlgorithm as Algorithm } from '../../jwt/algorithms.ts'
export type { Fetch } from './keys.ts'
export { expectThread, hasPermission, requirePermission, requireRole } from './user.ts'
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

/** Restricted tools (spec "Authentication" 9): authorise, confirm, execute, in this order. */
import { requirePermission, type AgentUser } from '../src/sdk/agent/index.ts'

export interface Tool {
  /** Who lacks it may not use the tool. */
  readonly permission: string
  /** What the user is asked before it happens. */
  readonly question: string
  /** Does it; gives what the agent says then. */
  execute(user: AgentUser): string
}

/**
 * Uses a tool. Nobody is asked to confirm what they may not do, and nothing happens before both.
 * @param confirmed whether the user, and not the model, has said yes to the question
 * @throws {PermissionDenied} if the user may not, confirmed or not
 */
export function useTool(tool: Tool, user: AgentUser, confirmed: boolean): string {
  requirePermission(user, tool.permission)
  if (!confirmed) return tool.question
  return tool.execute(user)
}

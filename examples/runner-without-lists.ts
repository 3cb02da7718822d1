/**
 * A runner as applications write their own, on a database for example: it runs agents and replays threads, and has none of
 * what the runtime's routes for lists, histories and changes of threads need. The runtime answers 422 to all of them.
 */
import type { BaseEvent } from '@ag-ui/client'
import {
  AgentRunner,
  type AgentRunnerConnectRequest,
  type AgentRunnerIsRunningRequest,
  type AgentRunnerRunRequest,
  type AgentRunnerStopRequest,
  InMemoryAgentRunner,
} from '@copilotkit/runtime/v2'
import type { Observable } from 'rxjs'

/** Keeps threads where the runtime's own runner keeps them, and tells the runtime nothing of them. */
export class RunnerWithoutLists extends AgentRunner {
  readonly #threads = new InMemoryAgentRunner()

  override run(request: AgentRunnerRunRequest): Observable<BaseEvent> {
    return this.#threads.run(request)
  }

  override connect(request: AgentRunnerConnectRequest): Observable<BaseEvent> {
    return this.#threads.connect(request)
  }

  override isRunning(request: AgentRunnerIsRunningRequest): Promise<boolean> {
    return this.#threads.isRunning(request)
  }

  override stop(request: AgentRunnerStopRequest): Promise<boolean | undefined> {
    return this.#threads.stop(request)
  }
}

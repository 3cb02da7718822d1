/** The client core that every CopilotKit frontend is built on, and its list of threads. */
export { CopilotKitCore, CopilotKitCoreRuntimeConnectionStatus, ɵcreateThreadStore as createThreadStore } from '@copilotkit/core'

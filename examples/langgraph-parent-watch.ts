/**
 * Loaded into the LangGraph server's first process: ends it and its group when its parent process has ended,
 * for any reason. Its standard input is a pipe without a writer.
 */
process.stdin.once('close', () => process.kill(-process.pid, 'SIGKILL')).resume()

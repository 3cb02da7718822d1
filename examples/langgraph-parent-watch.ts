/**
 * Loaded into the LangGraph server's first process: ends it and its group when whoever started it is gone, however that
 * came about. Its standard input is a pipe that nobody writes to.
 */
process.stdin.once('close', () => process.kill(-process.pid, 'SIGKILL')).resume()

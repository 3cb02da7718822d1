/** `forwardedProps` is an allow-list, and the names that reach into an agent are known. */
import { test } from 'tap'
import { filterForwardedProps, isUnsafeProp } from '../../src/core/route/forwarded-props.ts'

const filter = (value: Parameters<typeof filterForwardedProps>[0], ...allowed: string[]) =>
  filterForwardedProps(value, new Set(allowed))

void test('toolChoice, command.resume and what the policy names pass; the rest is dropped by name', (t) => {
  const all = { toolChoice: 1, command: { resume: 1, goto: 2, update: 3 }, config: {}, a2ui: 1, toString: 2 }
  t.strictSame(filter(all, 'a2ui'), {
    kept: { toolChoice: 1, command: { resume: 1 }, a2ui: 1 },
    dropped: ['command.goto', 'command.update', 'config', 'toString'],
  })
  t.end()
})

void test('command passes whole or in parts', (t) => {
  const command = { goto: 1, resume: 2 }
  t.strictSame(filter({ command }, 'command'), { kept: { command }, dropped: [] })
  t.strictSame(filter({ command }, 'command.goto'), { kept: { command }, dropped: [] })
  t.strictSame(filter({ command }), { kept: { command: { resume: 2 } }, dropped: ['command.goto'] })
  t.strictSame(filter({ command: { goto: 1 } }), { kept: {}, dropped: ['command.goto'] }, 'no empty command')
  for (const odd of ['x', null, ['resume']]) t.strictSame(filter({ command: odd }), { kept: {}, dropped: ['command'] })
  t.end()
})

void test('a name with a dot is no part of command, even where the policy names that part', (t) => {
  t.strictSame(filter({ 'command.resume': 1, 'command.goto': 2, commander: 3 }, 'command.goto', 'commander'), {
    kept: { commander: 3 },
    dropped: ['command.resume', 'command.goto'],
  })
  t.end()
})

void test('what is no object passes in no part', (t) => {
  for (const value of ['x', 5, true, ['config']]) t.strictSame(filter(value, '0'), { kept: {}, dropped: ['forwardedProps'] })
  t.strictSame(filter(null), { kept: {}, dropped: [] }, 'null is as good as none')
  t.end()
})

void test('unsafe names are known in every spelling that an agent may fold together', (t) => {
  const unsafe = ['config', 'context', 'webhook', 'metadata', 'threadMetadata', 'thread_metadata', 'checkpoint', 'checkpointId', 'checkpoint_during', 'nodeName', 'node_name', 'command', 'command.goto', 'command.update', 'multitaskStrategy', 'onCompletion', 'onDisconnect', 'afterSeconds', 'interruptBefore', 'ifNotExists', 'feedbackKeys', 'streamMode', 'streamSubgraphs', 'durability', '__proxiedMCPRequest', 'CONFIG', '_con_fig_', 'input', 'messages', 'state', 'tools', 'copilotkit', 'ag-ui', 'Command.Resume', 'tool_s'] // oxfmt-ignore
  for (const name of unsafe) t.ok(isUnsafeProp(name), name)
  for (const name of ['toolChoice', 'command.resume', 'a2uiAction', 'theme', 'my-config', 'upstream', 'commander', ''])
    t.notOk(isUnsafeProp(name), name)
  t.end()
})

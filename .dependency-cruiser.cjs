/** The import law (docs/how-it-works.md): what each folder of src may know. */
const only = (folder, allowed, comment) => ({
  name: `${folder}-knows-only`,
  comment,
  severity: 'error',
  from: { path: `^src/${folder}/` },
  to: { path: '^src/', pathNot: [folder, ...allowed].map((name) => `^src/${name}/`) },
})

module.exports = {
  forbidden: [
    { name: 'no-circles', severity: 'error', from: { path: '^src/' }, to: { circular: true } },
    {
      name: 'core-is-pure',
      comment: 'no npm package, nothing of Node, no other folder',
      severity: 'error',
      from: { path: '^src/core/' },
      to: { pathNot: '^src/core/' },
    },
    only('document', [], 'files that operators write'),
    only('config', ['core', 'document'], 'what is configured, not who uses it'),
    only('policy', ['core', 'document'], 'rules, not credentials or storage'),
    only(
      'trial',
      ['core', 'config', 'document', 'policy', 'auth'],
      'decisions that are tried out: no network but for keys, no storage',
    ),
    only('auth', ['core', 'config'], 'credentials, not rules or storage'),
    only('store', ['core'], 'storage, not rules or credentials'),
    only('observe', ['core'], 'what happened'),
    only('limits', ['core'], 'counters, not whom they are for'),
    only(
      'http',
      ['core', 'auth', 'store', 'observe', 'limits'],
      'the way of a request; it gets everything concrete from src/gateway.ts',
    ),
    only('agent', [], 'it runs in agents, which have no gateway in them'),
    {
      name: 'agent-needs-fast-jwt-alone',
      comment: 'no other npm package, and of Node only the cryptography',
      severity: 'error',
      from: { path: '^src/agent/' },
      to: { pathNot: '^src/agent/|node_modules/fast-jwt/|^(node:)?crypto$' },
    },
    {
      name: 'nobody-in-the-gateway-imports-agent',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/agent/' },
      to: { path: '^src/agent/' },
    },
    only('doctor', ['core', 'config', 'auth', 'http', 'store'], 'looks at everything, and is used by its command alone'),
    {
      name: 'only-its-command-knows-the-doctor',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(doctor/|cli/doctor.ts$)' },
      to: { path: '^src/doctor/' },
    },
    {
      name: 'http-sees-the-port-of-the-store',
      severity: 'error',
      from: { path: '^src/http/' },
      to: { path: '^src/store/', pathNot: '^src/store/port.ts$' },
    },
    {
      name: 'http-sees-the-port-of-the-limits',
      severity: 'error',
      from: { path: '^src/http/' },
      to: { path: '^src/limits/', pathNot: '^src/limits/port.ts$' },
    },
    {
      name: 'only-http-knows-fastify',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/http/' },
      to: { path: 'node_modules/(@fastify|fastify)' },
    },
    {
      name: 'nobody-imports-the-program',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(cli/|cli.ts$)' },
      to: { path: '^src/cli' },
    },
    { name: 'src-knows-no-tests', severity: 'error', from: { path: '^src/' }, to: { path: '^(test|examples|scripts)/' } },
    {
      name: 'declared-dependencies',
      severity: 'error',
      from: { path: '^src/' },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'] },
    },
    { name: 'no-orphans', severity: 'error', from: { orphan: true, path: '^src/', pathNot: '^src/cli.ts$|[.]d[.]ts$' }, to: {} },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default', 'types'] },
  },
}

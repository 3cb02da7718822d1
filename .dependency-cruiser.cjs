/**
 * The dependency rules (docs/contributing/source-layout.md): what each folder of src may import, and who may import
 * tests. A folder's name stands for the files in it and below it, a name with an ending for one file.
 */
/** Files of the store port: each consumer asks only for what it uses. */
const port = (...names) => names.map((name) => `store/port/${name}.ts`)

const ALLOWED = {
  document: ['core/json/pointer.ts'],
  'core/json': ['core/reasons.ts'],
  'core/route': ['core/reasons.ts', 'core/json', 'core/decide/sharing.ts'],
  'core/decide': ['core/reasons.ts', 'core/json', 'core/route'],
  'core/wire': ['core'],
  jwt: [],
  tls: ['config', 'document/sources.ts'],
  config: ['core', 'document', 'jwt', 'tls/settings.ts'],
  policy: ['core', 'document'],
  auth: ['core', 'config', 'document/sources.ts', 'jwt', 'tls/certificates.ts'],
  postgres: [],
  observe: ['core'],
  limits: ['core', 'postgres'],
  store: ['core', 'postgres'],
  'store/port': ['core'],
  'store/sql': ['core', 'store/port', 'store/access-cache.ts'],
  'store/sqlite': ['core', 'store'],
  'store/postgres': ['core', 'store', 'postgres'],
  audit: ['core', 'observe', 'policy'],
  operator: ['core', ...port('administration', 'grants', 'revocations', 'thread')],
  'http/pipeline': [
    'core',
    'auth',
    'observe',
    'http/lists',
    'http/upstream',
    'http/admin/grants.ts',
    'limits/port.ts',
    ...port('access', 'claims', 'observations', 'state', 'thread'),
  ],
  'http/upstream': [
    'core',
    'observe',
    'http/pipeline',
    'http/lists/rewriting.ts',
    'http/listeners/readiness.ts',
    'tls/settings.ts',
    ...port('state'),
  ],
  'http/lists': ['core', 'http/pipeline', 'http/upstream', ...port('administration', 'claims', 'lists', 'thread')],
  'http/langgraph': ['core', 'observe', 'http/lists', 'http/pipeline', 'http/upstream', ...port('claims', 'lists')],
  'http/admin': [
    'core',
    'document/sources.ts',
    'operator',
    'observe',
    'http/admin/console',
    'http/pipeline',
    'http/listeners',
    'limits/port.ts',
    ...port('administration', 'grants', 'revocations', 'state', 'thread'),
  ],
  'http/admin/console': ['core', 'observe', 'http/admin/answers.ts', 'http/admin/credentials.ts'],
  // Runs in a browser.
  console: [],
  'http/listeners': ['core', 'observe', 'http/pipeline', 'http/upstream', 'tls/settings.ts', ...port('state')],
  snapshot: ['core', 'document', 'config', 'policy', 'auth', 'http', 'audit', 'observe', 'tls', 'limits/port.ts', 'store/port'],
  gateway: [
    'core',
    'document',
    'config',
    'policy',
    'auth',
    'http',
    'audit',
    'observe',
    'store',
    'limits',
    'postgres',
    'snapshot',
    'tls',
  ],
  'gateway/workers': [
    'core',
    'document/sources.ts',
    'config',
    'http',
    'audit',
    'observe',
    'store',
    'limits',
    'snapshot',
    'gateway',
  ],
  'tools/simulate': [
    'core',
    'document',
    'config',
    'policy',
    'auth',
    'jwt',
    'audit',
    'http',
    'observe',
    'snapshot',
    'limits/port.ts',
    'store/port',
  ],
  'tools/import-export': [
    'core',
    'document/nearest.ts',
    'document/quantities.ts',
    'operator',
    'http/upstream',
    ...port('administration', 'claims', 'observations', 'state', 'thread'),
  ],
  'tools/doctor': ['core', 'document/sources.ts', 'document/quantities.ts', 'config', 'auth', 'http', 'store', 'postgres', 'tls'],
  'tools/support': ['core'],
  'tools/init': ['core', 'auth/fetching.ts', 'jwt', 'http/upstream', 'http/pipeline/history.ts', 'tls'],
  'sdk/agent': ['jwt', 'core/json/pointer.ts', 'core/wire/addresses.ts'],
  'sdk/hooks': ['core', 'document', 'config', 'http', 'observe', 'snapshot', 'gateway'],
  cli: [
    'core',
    'document',
    'auth/fetching.ts',
    'config',
    'policy',
    'operator',
    'audit',
    'http',
    'observe',
    'store',
    'postgres',
    'snapshot',
    'gateway',
    'tls',
    'tools',
  ],
}

/** Files that put parts together, and what they may import besides. */
const ALSO = {
  'store/open.ts': ['config', 'observe', 'store/sqlite', 'store/postgres'],
  'store/inspect.ts': ['store/sqlite'],
  'store/retention.ts': ['observe'],
  'limits/open.ts': ['config', 'observe'],
  'audit/recorder.ts': ['http/pipeline', 'http/listeners/app.ts', 'snapshot/manager.ts', 'snapshot/snapshot.ts'],
  'gateway/inspection.ts': ['operator', 'tools/simulate'],
  'snapshot/snapshot.ts': ['gateway/operator-notices.ts'],
  'snapshot/assemble-pipeline.ts': ['gateway/operator-notices.ts'],
}

/** What runs by itself: the page of the console, the program, what applications import, and the process of a worker. */
const ENTRIES = '^src/(console/main|cli|sdk/agent/index|sdk/hooks/index|gateway/workers/program)[.]tsx?$'

const BOTH = 'what scripts and tests both need is in testing/'

const filesOf = (name) => (name.endsWith('.ts') ? `^src/${name}$` : `^src/${name}/`)

/** The files of a folder, without those of folders that have a rule of their own. */
const ownFilesOf = (folder) => {
  const below = Object.keys(ALLOWED).filter((other) => other.startsWith(`${folder}/`))
  return { path: filesOf(folder), pathNot: [...below, ...Object.keys(ALSO)].map(filesOf) }
}

const only = (name, from, allowed) => ({
  name: `${name}-imports-only`,
  severity: 'error',
  from,
  to: { path: '^src/', pathNot: allowed.map(filesOf) },
})

module.exports = {
  forbidden: [
    { name: 'no-circles', severity: 'error', from: { path: '^src/' }, to: { circular: true } },
    {
      name: 'core-is-pure',
      comment: 'no npm package, no other folder, and of Node only what reads and writes text',
      severity: 'error',
      from: { path: '^src/core/' },
      to: { pathNot: ['^src/core/', '^(?:buffer|string_decoder)$'] },
    },
    ...Object.entries(ALLOWED).map(([folder, allowed]) => only(folder, ownFilesOf(folder), [folder, ...allowed])),
    ...Object.entries(ALSO).map(([file, also]) => {
      const folder = file.slice(0, file.indexOf('/'))
      return only(file, { path: filesOf(file) }, [folder, ...ALLOWED[folder], ...also])
    }),
    {
      name: 'every-folder-has-a-rule',
      severity: 'error',
      from: { path: '^src/', pathNot: [...Object.keys(ALLOWED).map(filesOf), '^src/cli.ts$', '^src/core/reasons.ts$'] },
      to: {},
    },
    {
      name: 'agent-needs-fast-jwt-alone',
      comment: 'no other npm package, and of Node only the cryptography',
      severity: 'error',
      from: { path: '^src/(sdk/agent|jwt)/' },
      to: { pathNot: '^src/(sdk/agent|jwt|core)/|node_modules/fast-jwt/|^(node:)?crypto$' },
    },
    {
      name: 'nothing-imports-the-sdk',
      comment: 'applications import it',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/sdk/' },
      to: { path: '^src/sdk/' },
    },
    {
      name: 'only-commands-import-tools',
      severity: 'error',
      // The admin API explains requests and shows the policy by what the commands use.
      from: { path: '^src/', pathNot: '^src/(tools|cli|gateway/inspection.ts$)' },
      to: { path: '^src/tools/' },
    },
    {
      name: 'only-its-command-imports-the-doctor',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(tools/doctor/|cli/(doctor|support-bundle).ts$)' },
      to: { path: '^src/tools/doctor/' },
    },
    {
      name: 'only-http-imports-fastify',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/http/' },
      to: { path: 'node_modules/(@fastify|fastify)' },
    },
    {
      name: 'only-postgres-imports-pg',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(store/)?postgres/' },
      to: { path: 'node_modules/(pg|@types/pg)/' },
    },
    {
      name: 'nothing-imports-the-program',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(cli/|cli.ts$)' },
      to: { path: '^src/cli' },
    },
    {
      name: 'only-serve-imports-workers',
      comment: 'one process needs nothing of what several need',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(gateway/workers/|cli/serve.ts$)' },
      to: { path: '^src/gateway/workers/' },
    },
    {
      name: 'src-imports-no-tests',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^(test|testing|examples|scripts)/' },
    },
    {
      name: 'examples-import-no-tests',
      severity: 'error',
      from: { path: '^examples/' },
      to: { path: '^(test|testing|scripts)/' },
    },
    { name: 'scripts-import-no-tests', comment: BOTH, severity: 'error', from: { path: '^scripts/' }, to: { path: '^test/' } },
    { name: 'tests-import-no-scripts', comment: BOTH, severity: 'error', from: { path: '^test/' }, to: { path: '^scripts/' } },
    {
      name: 'scripts-start-no-test-runner',
      severity: 'error',
      from: { path: '^scripts/' },
      to: { path: '^testing/support/pairs[.]ts$', reachable: true },
    },
    {
      name: 'testing-imports-neither',
      comment: BOTH,
      severity: 'error',
      from: { path: '^testing/' },
      to: { path: '^(test|scripts)/' },
    },
    {
      name: 'declared-dependencies',
      severity: 'error',
      from: { path: '^src/' },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'] },
    },
    {
      name: 'no-orphans',
      comment: 'what only tests or scripts import is not part of the program',
      severity: 'error',
      from: { path: ENTRIES },
      to: { path: '^src/', pathNot: ENTRIES, reachable: false },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^examples/next/[.]next/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default', 'types'] },
  },
}

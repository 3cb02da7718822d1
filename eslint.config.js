import tseslint from 'typescript-eslint'

export default tseslint.config(
  {
    ignores: [
      'dist/',
      'examples/web/',
      'site/.vitepress/',
      'site/dist/',
      'scripts/setup.mjs',
      '**/node_modules/',
      '.tap/',
      'scripts/mutants/tester/',
      'scripts/coverage-fuzz/fuzzer/',
      '.dependency-cruiser.cjs',
    ],
  },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: {
      parserOptions: { projectService: { allowDefaultProject: ['eslint.config.js'] }, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      // A promise that nobody waits for before a decision is a way round it.
      '@typescript-eslint/no-floating-promises': ['error', { ignoreVoid: true }],
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/return-await': ['error', 'in-try-catch'],
      '@typescript-eslint/promise-function-async': 'off',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/consistent-type-imports': 'error',
      // Index signatures are read with brackets (tsconfig noPropertyAccessFromIndexSignature).
      '@typescript-eslint/dot-notation': 'off',
      // Promises of an interface may be kept without waiting for anything.
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true, ignoreVoidOperator: true }],
      'no-restricted-imports': ['error', { patterns: [{ group: ['**/dist/**'], message: 'import the source' }] }],
      eqeqeq: 'error',
    },
  },
  {
    files: ['src/**'],
    rules: {
      // Each item of a list that is spread into a call is an argument, and V8 has room on its stack for some 120,000 of them.
      'no-restricted-syntax': [
        'error',
        {
          selector: ':matches(CallExpression, NewExpression) > SpreadElement.arguments',
          message: 'use a loop: callers choose how long lists are',
        },
      ],
    },
  },
  {
    // What is spread here are tuples of a known length, keys of the route table, and what a policy file says.
    files: ['src/core/route/routes.ts', 'src/http/pipeline/settlement.ts', 'src/policy/warnings.ts'],
    rules: { 'no-restricted-syntax': 'off' },
  },
  {
    files: ['test/**', 'testing/**', 'examples/**', 'scripts/**'],
    rules: {
      // The types of libraries that ship none are a local declaration, which has to reach the tests too.
      '@typescript-eslint/triple-slash-reference': 'off',
      '@typescript-eslint/no-misused-spread': 'off',
      '@typescript-eslint/no-deprecated': 'off',
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/no-confusing-void-expression': 'off',
    },
  },
  { files: ['**/*.js'], ...tseslint.configs.disableTypeChecked },
)

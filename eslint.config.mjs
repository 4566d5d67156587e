import tseslint from 'typescript-eslint';

/**
 * The closed list of what may call JSON.parse, in all that may see what a tenant wrote. The faults of V8 concern the
 * names of objects, so a text without any, and the texts of other engines, are not in danger (ADR 19).
 */
const MAY_PARSE_BY_V8 = [
  // reads texts with escaped names again, without it
  'platform/src/core/parse-json.ts',
  // runs in QuickJS, which has a JSON.parse of its own
  'services/agents/src/runtimes/script/prelude.ts',
  // reads our own sources, before types can be stripped
  'services/agents/src/runtimes/runners/load-sources.js',
];

/** Few rules, those that find bugs; what Prettier and `tsc` see is left to them. */
export default tseslint.config(
  { ignores: ['proto/gen/', 'clients/', '**/node_modules/', '.engines/', '.releases/', 'data/'] },
  {
    files: ['**/*.ts'],
    plugins: { '@typescript-eslint': tseslint.plugin },
    languageOptions: { parser: tseslint.parser, parserOptions: { projectService: true } },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      eqeqeq: 'error',
      'no-self-compare': 'error',
      'no-template-curly-in-string': 'error',
      'no-var': 'error',
      'prefer-const': ['error', { destructuring: 'all' }],
      '@typescript-eslint/await-thenable': 'error',
      '@typescript-eslint/no-array-delete': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-floating-promises': ['error', { ignoreVoid: true }],
      '@typescript-eslint/no-for-in-array': 'error',
      '@typescript-eslint/no-misused-promises': [
        'error',
        { checksVoidReturn: { arguments: false, properties: false } },
      ],
      '@typescript-eslint/no-unnecessary-type-assertion': 'error',
      '@typescript-eslint/no-unsafe-unary-minus': 'error',
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_', ignoreRestSiblings: true },
      ],
      '@typescript-eslint/no-unused-expressions': ['error', { allowShortCircuit: true, allowTernary: true }],
      '@typescript-eslint/return-await': ['error', 'error-handling-correctness-only'],
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
    },
  },
  {
    files: ['{services/*,platform,gateway,admin,launcher}/src/**/*.{ts,js}'],
    ignores: MAY_PARSE_BY_V8,
    languageOptions: { parser: tseslint.parser },
    rules: {
      'no-restricted-properties': [
        'error',
        {
          object: 'JSON',
          property: 'parse',
          message: 'V8 may give a name of one organization to another one (ADR 19): use parseJson of platform/core.',
        },
      ],
    },
  },
  {
    // what runs for each request on V8
    files: [
      'gateway/src/{contract,http,limits,policies}/**/*.ts',
      'platform/src/rpc/**/*.ts',
      'services/*/src/**/*.ts',
    ],
    ignores: ['services/agents/src/runtimes/script/prelude.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        {
          selector: 'AssignmentExpression[left.type="MemberExpression"][right.type=/^(Arrow)?FunctionExpression$/]',
          message:
            'V8 makes a function that is assigned to a member in the old space, where it keeps all that it refers to until the next full collection. Name the function first (ADR 24).',
        },
      ],
    },
  },
);

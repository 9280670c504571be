// Type-aware linting for every TypeScript file of the workspace.
import { existsSync } from 'node:fs';
import js from '@eslint/js';
import tseslint from 'typescript-eslint';
import { importDirection } from './tooling/eslint/import-direction.mjs';
import { plainEnglish } from './tooling/eslint/plain-english.mjs';

const inPackage = !existsSync('pnpm-workspace.yaml');

// In the root, one program has the sources of all packages, so that each file is parsed and checked once. The browser's
// types differ, hence those programs of their own.
const ROOT_PROJECTS = [
  'tsconfig.lint.json',
  'packages/launcher/src/web/status/client/tsconfig.json',
  'tooling/status-page/tsconfig.json',
  'tooling/status-page/tsconfig.test.json',
];
const projects = (project) => ({ projectService: false, project, tsconfigRootDir: process.cwd() });

export default tseslint.config(
  {
    ignores: [
      ...['**/dist/**', '**/dist-test/**', '**/node_modules/**', '**/site/**', '**/*.cjs', '**/*.mjs', '**/*.js'],
      // Drivers as they are made for others, with settings of their own, which the tests of create-driver apply.
      '**/templates/**',
    ],
  },
  js.configs.recommended,
  tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: inPackage ? { projectService: true } : projects(ROOT_PROJECTS) },
    plugins: { nodepool: { rules: { 'import-direction': importDirection, 'plain-english': plainEnglish } } },
    rules: {
      'nodepool/import-direction': 'error',
      'nodepool/plain-english': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/explicit-module-boundary-types': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/no-unnecessary-condition': ['error', { allowConstantLoopConditions: true }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      '@typescript-eslint/require-await': 'off',
      'no-restricted-globals': [
        'error',
        { name: 'setTimeout', message: 'Use a Clock.' },
        { name: 'setInterval', message: 'Use a Clock.' },
      ],
    },
  },
  {
    files: ['**/test/**/*.ts'],
    // Tests have a project of their own, which the nearest tsconfig.json does not name.
    languageOptions: inPackage ? { parserOptions: projects(['tsconfig.test.json']) } : {},
    rules: {
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/unbound-method': 'off',
      'no-restricted-globals': 'off',
    },
  },
);

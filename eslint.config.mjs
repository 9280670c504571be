// The rules of oxlint (.oxlintrc.json) in eslint, and its typed rules that oxlint lacks: `pnpm lint:eslint`.
import { existsSync, readFileSync } from 'node:fs';
import js from '@eslint/js';
import tseslint from 'typescript-eslint';
import nodepool from './tooling/eslint/plugin.mjs';

const inPackage = !existsSync('pnpm-workspace.yaml');
const oxlint = JSON.parse(readFileSync(new URL('.oxlintrc.json', import.meta.url), 'utf8'));

const strict = Object.assign({}, ...tseslint.configs.strictTypeChecked.map(({ rules }) => rules));

/** Returns rules of oxlint under the names that they have in eslint. */
function named(rules) {
  return Object.fromEntries(
    Object.entries(rules).map(([name, setting]) => {
      const typed = `@typescript-eslint/${name.replace('typescript/', '')}`;
      return [name.startsWith('typescript/') || typed in strict ? typed : name, setting];
    }),
  );
}

// In the root, one program has the sources of all packages, so that each file is parsed and checked once. The browser's
// types differ, hence those programs of their own.
const ROOT_PROJECTS = [
  'tsconfig.json',
  'packages/status/src/client/tsconfig.json',
  'tooling/status-page/tsconfig.json',
  'tooling/status-page/tsconfig.test.json',
];
const projects = (project) => ({ projectService: false, project, tsconfigRootDir: process.cwd() });

export default tseslint.config(
  { ignores: oxlint.ignorePatterns },
  js.configs.recommended,
  tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: inPackage ? { projectService: true } : projects(ROOT_PROJECTS) },
    plugins: { nodepool },
    rules: { ...named(oxlint.rules), '@typescript-eslint/require-await': 'off' },
  },
  ...oxlint.overrides.map(({ files, rules }) => ({ files, rules: named(rules) })),
  // Tests have a project of their own, which the nearest tsconfig.json does not name.
  inPackage ? { files: ['**/test/**/*.ts'], languageOptions: { parserOptions: projects(['tsconfig.test.json']) } } : {},
);

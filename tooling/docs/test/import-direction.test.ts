/** The lint rule for the direction of imports, which covers packages, folders of the launcher and type-only imports. */

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from '@jest/globals';
import { REPOSITORY } from '../src/repository.js';

const RULE = pathToFileURL(join(REPOSITORY, 'tooling', 'eslint', 'import-direction.mjs')).href;

/** Files with one statement each. */
const ALLOWED = [
  ['packages/store/src/a.ts', `import { core } from '@nodepool/core';`],
  ['packages/store/src/a.ts', `import { own } from './other.js';`],
  ['packages/driver-new/src/a.ts', `import { pyyaml } from '@nodepool/pyyaml';`],
  ['packages/launcher/src/requests/a.ts', `import { quota } from '../quota/a.js';`],
  ['packages/launcher/src/quota/a.ts', `import { context } from '../context.js';`],
  ['packages/store/test/a.ts', `import { config } from '@nodepool/config';`],
];
const VIOLATIONS = [
  ['packages/core/src/a.ts', `import { store } from '@nodepool/store';`],
  ['packages/core/src/a.ts', `import type { Store } from '@nodepool/store';`],
  ['packages/core/src/a.ts', `export * from '@nodepool/store';`],
  ['packages/core/src/a.ts', `type Store = import('@nodepool/store').Store;`],
  ['packages/store/src/a.ts', `const config = await import('@nodepool/config');`],
  ['packages/driver-new/src/a.ts', `import { store } from '@nodepool/store';`],
  ['packages/launcher/src/quota/a.ts', `import type { Requests } from '../requests/a.js';`],
  ['packages/launcher/src/diagnostics/history/a.ts', `import { launcher } from '../../launcher.js';`],
];

/** Returns the messages of the rule for each file, from a separate process, because jest loads no ES modules. */
function messagesFor(files: readonly (readonly string[])[]): string[][] {
  const program = `
    import { readFileSync } from 'node:fs';
    import { Linter } from 'eslint';
    import typescript from 'typescript-eslint';
    import { importDirection } from ${JSON.stringify(RULE)};
    const config = {
      files: ['**/*.ts'],
      languageOptions: { parser: typescript.parser },
      plugins: { nodepool: { rules: { direction: importDirection } } },
      rules: { 'nodepool/direction': 'error' },
    };
    const linter = new Linter({ cwd: '/' });
    const files = JSON.parse(readFileSync(0, 'utf8'));
    const messages = files.map(([name, text]) => linter.verify(text, config, '/repository/' + name));
    process.stdout.write(JSON.stringify(messages.map((each) => each.map(({ message }) => message))));`;
  const options = { cwd: REPOSITORY, input: JSON.stringify(files), encoding: 'utf8' } as const;
  return JSON.parse(execFileSync(process.execPath, ['--input-type=module', '-e', program], options)) as string[][];
}

it('the rule finds imports against the direction, and no others', () => {
  const messages = messagesFor([...ALLOWED, ...VIOLATIONS]);
  expect(messages.slice(0, ALLOWED.length)).toEqual(ALLOWED.map(() => []));
  expect(messages.slice(ALLOWED.length)).toEqual(
    VIOLATIONS.map(() => [expect.stringMatching(/may import .*, but not/)]),
  );
});

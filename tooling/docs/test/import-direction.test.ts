/** The lint rule for the direction of imports, which covers packages, folders of the launcher and type-only imports. */

import { expect, it } from '@jest/globals';
import { lint } from './oxlint.js';

/** Files with one statement each. */
const ALLOWED: readonly [string, string][] = [
  ['packages/store/src/a.ts', `import { core } from '@nodepool/core';`],
  ['packages/store/src/a.ts', `import { own } from './other.js';`],
  ['packages/driver-new/src/a.ts', `import { pyyaml } from '@nodepool/pyyaml';`],
  ['packages/launcher/src/requests/a.ts', `import { quota } from '../quota/a.js';`],
  ['packages/launcher/src/quota/a.ts', `import { context } from '../context.js';`],
  ['packages/store/test/a.ts', `import { config } from '@nodepool/config';`],
];
const VIOLATIONS: readonly [string, string][] = [
  ['packages/core/src/a.ts', `import { store } from '@nodepool/store';`],
  ['packages/core/src/a.ts', `import type { Store } from '@nodepool/store';`],
  ['packages/core/src/a.ts', `export * from '@nodepool/store';`],
  ['packages/core/src/a.ts', `type Store = import('@nodepool/store').Store;`],
  ['packages/store/src/a.ts', `const config = await import('@nodepool/config');`],
  ['packages/driver-new/src/a.ts', `import { store } from '@nodepool/store';`],
  ['packages/store/src/commit/a.ts', `import type { Nodes } from '../nodes/a.js';`],
  ['packages/launcher/src/quota/a.ts', `import type { Requests } from '../requests/a.js';`],
  ['packages/launcher/src/metrics/a.ts', `import { launcher } from '../launcher.js';`],
];

it('the rule finds imports against the direction, and no others', () => {
  const findings = lint('nodepool/import-direction', [...ALLOWED, ...VIOLATIONS]);
  const messages = findings.map((each) => each.map(({ message }) => message));
  expect(messages.slice(0, ALLOWED.length)).toEqual(ALLOWED.map(() => []));
  expect(messages.slice(ALLOWED.length)).toEqual(
    VIOLATIONS.map(() => [expect.stringMatching(/may import .*, but not/)]),
  );
});

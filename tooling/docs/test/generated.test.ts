/** The generated parts of the documentation are up to date. */

import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { GENERATED, insertGenerated } from '../src/generated.js';
import { REPOSITORY } from '../src/repository.js';

describe('the generated documentation', () => {
  it.each(GENERATED.map((part) => [part.page, part.name, part] as const))(
    'is up to date in docs/%s: %s (if not: pnpm run docs:generate)',
    async (page, _name, part) => {
      const written = readFileSync(join(REPOSITORY, 'docs', page), 'utf8');
      expect(written).toBe(insertGenerated(written, part, await part.make()));
    },
  );
});

describe('insertGenerated', () => {
  const part = { page: 'a.md', name: 'options' };

  it('replaces only the text between the comments', () => {
    const page = 'before\n\n<!-- generated: options -->\nold\n<!-- /generated -->\n\nafter\n';
    expect(insertGenerated(page, part, 'new')).toBe(
      'before\n\n<!-- generated: options -->\n\nnew\n\n<!-- /generated -->\n\nafter\n',
    );
  });

  it('reports missing comments in a page', () => {
    expect(() => insertGenerated('nothing', part, 'new')).toThrow(/docs\/a\.md .*<!-- generated: options -->/);
  });
});

/** Findings about the origin of packages. */

import { describe, expect, it } from '@jest/globals';
import { checkOrigins } from '../src/checks/provenance.js';

const ARCHIVE = 'https://registry.example/x/-/x-1.2.3.tgz';
const CHECKSUM = `sha512-${'a'.repeat(86)}==`;

function found(fields: { readonly resolved?: string; readonly integrity?: string }, name = 'x'): string {
  const findings = checkOrigins([{ name, version: '1.2.3', manifest: {}, ...fields }]);
  return findings.map(({ message }) => message).join('\n');
}

describe('the check of origins', () => {
  it('accepts an archive of a registry with its checksum', () => {
    expect(found({ resolved: ARCHIVE, integrity: CHECKSUM })).toBe('');
    expect(found({ integrity: CHECKSUM })).toBe('');
  });

  it.each([
    'git+ssh://git@example.org/x/x.git#0123456',
    'https://example.org/x/x/archive/main.tar.gz',
    'file:../x.tgz',
    'http://example.org/x.tgz?token=1',
  ])('reports the origin %s', (resolved) => {
    expect(found({ resolved, integrity: CHECKSUM })).toContain(`x@1.2.3 comes from ${resolved}`);
  });

  it('reports a missing or weak checksum', () => {
    expect(found({ resolved: ARCHIVE })).toContain('x@1.2.3 has no secure checksum (none)');
    expect(found({ resolved: ARCHIVE, integrity: 'sha1-abc' })).toContain('no secure checksum (sha1-abc)');
  });

  it("accepts files as the origin of the workspace's own packages", () => {
    expect(found({ resolved: 'file:../core.tgz' }, '@nodepool/core')).toBe('');
  });
});

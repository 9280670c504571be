/** Tests of the keys for images that are tested, or made by another program. */

import { describe, expect, it } from '@jest/globals';
import { configOf, problemsOf } from './files.js';

describe('the tests of an image', () => {
  it('have defaults, are inherited, and can be removed', async () => {
    const config = await configOf(`
diskimages:
  - {name: base, abstract: true, boot-test: true, launch-test: true, canary: true}
  - {name: plain, parent: base, boot-test: false, launch-test: false, canary: false}
  - {name: own, parent: base, boot-test: {timeout: 5, command: 'true'}, canary: {share: 25%, nodes: 7, false-alarms: 0.01}}
`);
    expect(config.diskImages.get('base')).toMatchObject({
      bootTest: { timeoutMs: 300_000, memory: 1024, cpus: 1, kvm: true, command: undefined, commandTimeoutMs: 300_000 },
      tests: {
        launchTest: { command: undefined, timeoutMs: 300_000, identity: undefined },
        canary: { share: 0.1, nodes: 30, falseAlarms: 0.05 },
      },
    });
    const plain = config.diskImages.get('plain');
    expect([plain?.bootTest, plain?.tests]).toEqual([undefined, undefined]);
    expect(config.diskImages.get('own')).toMatchObject({
      bootTest: { timeoutMs: 5000, command: 'true' },
      tests: { launchTest: { command: undefined }, canary: { share: 0.25, nodes: 7, falseAlarms: 0.01 } },
    });
  });

  it('leave an image without them as it was', async () => {
    const config = await configOf('diskimages: [{name: debian}]\n');
    expect(Object.keys(config.diskImages.get('debian') ?? {})).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/bootTest|source|tests/)]),
    );
  });

  it.each([
    ['a share of all launches', 'canary: {share: 100%}'],
    ['a share above one', 'canary: {share: 1.5}'],
    ['no nodes', 'canary: {nodes: 0}'],
    ['an unknown key', 'launch-test: {comand: ls}'],
    ['too little memory', 'boot-test: {memory: 1}'],
  ])('are refused with %s', async (_what, key) => {
    expect(await problemsOf(`diskimages: [{name: debian, ${key}}]\n`)).not.toEqual([]);
  });
});

describe('the source of an image', () => {
  const DIGITS = '0'.repeat(64);

  it('is a download with its checksum, or a file', async () => {
    const config = await configOf(`
diskimages:
  - {name: a, source: {url: 'https://example.org/a.qcow2.xz', sha256: '${DIGITS}'}}
  - {name: b, source: {path: /srv/b.raw}}
`);
    expect(config.diskImages.get('a')?.source).toMatchObject({ url: 'https://example.org/a.qcow2.xz', sha256: DIGITS });
    expect(config.diskImages.get('b')?.source).toMatchObject({ path: '/srv/b.raw', sha256: undefined });
  });

  it.each([
    ['a download without its checksum', "source: {url: 'https://example.org/a.raw'}"],
    ['both', `source: {url: 'https://example.org/a.raw', sha256: '${DIGITS}', path: /a}`],
    [
      'a checksum from an address that can be changed on the way',
      "source: {url: 'http://example.org/a.raw', sha256: 'http://example.org/SHA256SUMS'}",
    ],
    ['a limit of nothing', 'source: {path: /a.raw, max-size: 0}'],
    ['a relative path', 'source: {path: a.raw}'],
    ['a checksum of another kind', "source: {path: /a.raw, sha256: '1234'}"],
  ])('is refused with %s', async (_what, key) => {
    expect(await problemsOf(`diskimages: [{name: debian, ${key}}]\n`)).not.toEqual([]);
  });
});

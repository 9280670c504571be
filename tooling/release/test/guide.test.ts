/** The pages show the commands that the rehearsal runs. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { follow, readGuide } from '../src/rehearse/guide.js';
import { workspaceRoot } from '../src/workspace.js';

describe('the guide', () => {
  it('has each block once, with the paths that the rehearsal replaces', async () => {
    const guide = await readGuide(workspaceRoot());

    for (const block of [guide.site, guide['from-tarballs'], guide.upgrade]) expect(block).toContain('/opt/nodepool');
    for (const block of [guide.pack, guide['from-tarballs']]) expect(block).toContain('/srv/nodepool-packages');
    for (const block of [guide['upgrade-driver'], guide['roll-back']]) expect(block).toContain('systemctl restart');
  });
});

describe('following a block', () => {
  let cwd: string;

  beforeEach(async () => {
    cwd = await mkdtemp(join(tmpdir(), 'nodepool-guide-'));
  });

  afterEach(() => rm(cwd, { recursive: true }));

  it('runs its lines with the substitutions, and restarts the launcher in the place of systemd', async () => {
    const restarts: string[] = [];
    const restart = (): Promise<void> => {
      restarts.push('launcher');
      return Promise.resolve();
    };

    const block = 'echo /opt/nodepool\nsystemctl restart nodepool-launcher';
    const output = await follow(block, { '/opt/nodepool': '/elsewhere' }, { cwd, env: {}, restart });

    expect(output).toBe('/elsewhere\n');
    expect(restarts).toEqual(['launcher']);
  });

  it('fails at the first command that fails, and if a page has changed', async () => {
    await expect(follow('false\necho later', {}, { cwd, env: {} })).rejects.toThrow('exit status 1');
    await expect(follow('true', { '/opt/nodepool': cwd }, { cwd, env: {} })).rejects.toThrow(
      'the page no longer shows "/opt/nodepool"',
    );
  });
});

/** The sources of real services, with stand-ins for the scripts that start them. */

import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { openRealOpenStack } from '../src/real-openstack.js';

const CLOUDS = 'clouds:\n  real:\n  limited:\n  real-admin:\n  real-appcred:\n';
const uninterrupted = new AbortController().signal;

describe('real services', () => {
  let folder: string;
  let script: string;
  const said: string[] = [];
  const say = (line: string): void => void said.push(line);

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'real-openstack-'));
    script = join(folder, 'up.sh');
    mkdirSync(join(folder, 'state'));
    writeFileSync(join(folder, 'down.sh'), 'touch "$OSTACK/stopped"\n');
    said.length = 0;
  });

  afterEach(() => {
    rmSync(folder, { recursive: true, force: true });
  });

  const env = (more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv => ({
    NODEPOOL_OPENSTACK_UP: script,
    OSTACK: join(folder, 'state'),
    ...more,
  });

  it('are the running services of OS_CLIENT_CONFIG_FILE, and continue to run', async () => {
    const clouds = join(folder, 'clouds.yaml');
    writeFileSync(clouds, CLOUDS);
    writeFileSync(script, 'exit 1\n');

    const found = await openRealOpenStack(say, uninterrupted, env({ OS_CLIENT_CONFIG_FILE: clouds }));

    if (typeof found === 'string') throw new Error(found);
    expect(found.cloudsYaml).toBe(clouds);
    await found.release();
    expect(existsSync(join(folder, 'state', 'stopped'))).toBe(false);
  });

  it('are refused if clouds.yaml lacks the clouds of the test environment', async () => {
    const clouds = join(folder, 'clouds.yaml');
    writeFileSync(clouds, 'clouds:\n  real:\n  production:\n');

    expect(await openRealOpenStack(say, uninterrupted, { OS_CLIENT_CONFIG_FILE: clouds })).toBe(
      `${clouds} (OS_CLIENT_CONFIG_FILE) is not a test bed: it lacks limited, real-admin, real-appcred`,
    );
  });

  it('are started by the script that prints their clouds.yaml last, and stopped at the end', async () => {
    writeFileSync(script, 'echo starting >&2\necho "$OSTACK/clouds.yaml"\n');

    const found = await openRealOpenStack(say, uninterrupted, env());

    if (typeof found === 'string') throw new Error(found);
    expect(found.cloudsYaml).toBe(join(folder, 'state', 'clouds.yaml'));
    await found.release();
    expect(existsSync(join(folder, 'state', 'stopped'))).toBe(true);
  });

  it.each(['up.sh: apt-get install failed', 'up.sh: run as root'])(
    'are unavailable if the script fails with "%s"',
    async (why) => {
      writeFileSync(script, `echo '${why}' >&2\nexit 1\n`);

      expect(await openRealOpenStack(say, uninterrupted, env())).toBe(
        `the services cannot be installed here: exit status 1: ${why}`,
      );
      expect(existsSync(join(folder, 'state', 'stopped'))).toBe(true);
    },
  );

  it('cause an error with the reason if they do not start', async () => {
    writeFileSync(script, 'echo "nova-api did not come up"\nexit 3\n');

    await expect(openRealOpenStack(say, uninterrupted, env())).rejects.toThrow(
      /up\.sh failed: exit status 3: nova-api did not come up$/,
    );
  });

  it('are stopped if their start is interrupted', async () => {
    writeFileSync(script, 'echo starting\nsleep 1000\n');
    const interrupted = new AbortController();
    const opening = openRealOpenStack(say, interrupted.signal, env());
    interrupted.abort(new Error('interrupted'));

    await expect(opening).rejects.toThrow('interrupted');
    expect(existsSync(join(folder, 'state', 'stopped'))).toBe(true);
    expect(said.at(-1)).toBe('stopping the OpenStack services');
  });

  it('cause an error if the script does not exist', async () => {
    await expect(openRealOpenStack(say, uninterrupted, env())).rejects.toThrow(
      `there is no ${script}: set NODEPOOL_OPENSTACK_UP`,
    );
  });
});

/** The simulated OpenStack as a program. */

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from '@jest/globals';
import { ApiClient } from '../src/index.js';

const PROGRAM = join(__dirname, '..', 'dist', 'bin.js');

describe('simulated-openstack', () => {
  const running: ChildProcess[] = [];

  afterEach(async () => {
    for (const child of running.splice(0)) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
  });

  function run(
    ...options: string[]
  ): ChildProcess & { readonly stdout: NodeJS.ReadableStream; readonly stderr: NodeJS.ReadableStream } {
    if (!existsSync(PROGRAM)) throw new Error('the program is not built; run `pnpm build` first');
    const child = spawn(process.execPath, [PROGRAM, ...options], { stdio: ['ignore', 'pipe', 'pipe'] });
    running.push(child);
    return child;
  }

  it('prints its address, applies its options, and deletes its files on SIGTERM', async () => {
    const child = run('--page-limit', '2', '--quota', 'limited.instances=7');
    const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
    const { cloudsYaml, url } = JSON.parse(line) as { readonly cloudsYaml: string; readonly url: string };
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);

    const limited = await ApiClient.logIn(cloudsYaml, 'limited');
    expect((await limited.get('compute', '/flavors')).list('flavors')).toHaveLength(2);
    expect((await limited.get('compute', '/limits')).text).toContain('"maxTotalInstances":7,');

    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
    expect(existsSync(cloudsYaml)).toBe(false);
  });

  it.each([
    [['--boot-ms', 'soon'], '--boot-ms takes an integer, not "soon"'],
    [['--quota', 'nobody.instances=1'], '--quota takes PROJECT.NAME=N, e.g. limited.instances=5'],
  ])('refuses %j with the reason', async (options, message) => {
    const child = run(...options);
    const said = text(child.stderr);
    expect(await once(child, 'exit')).toEqual([1, null]);
    expect(await said).toContain(message);
  });
});

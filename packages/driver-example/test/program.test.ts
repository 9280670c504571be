/** The program `nodepool-example-cloud` as a separate process. */

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { createInterface } from 'node:readline';
import { afterEach, describe, expect, it } from '@jest/globals';
import { systemClock } from '@nodepool/core';
import { failureOf } from './helpers.js';
import { cleanUp, launch, launchOf, section, startProvider } from './provider.js';

const PROGRAM = join(__dirname, '..', 'dist', 'bin.js');

describe('nodepool-example-cloud', () => {
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

  async function endpointOf(child: ReturnType<typeof run>): Promise<string> {
    const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
    return line;
  }

  it('prints its address, serves several providers one after the other, and stops on SIGTERM', async () => {
    const child = run(
      '--port',
      '0',
      '--set',
      'zones=["north"]',
      '--set',
      'quota.instances=2',
      '--set',
      'quota.cores=9',
    );
    const endpoint = await endpointOf(child);
    expect(endpoint).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);

    const first = await startProvider(systemClock, undefined, section({ endpoint }));
    const instance = await launch(first.provider, launchOf(systemClock, '0000000001'));
    expect(instance).toMatchObject({ az: 'north' });
    await first.kill();

    const second = await startProvider(systemClock, undefined, section({ endpoint }));
    await launch(second.provider, launchOf(systemClock, '0000000002'));
    const refusal = await failureOf(() => launch(second.provider, launchOf(systemClock, '0000000003')));
    expect(refusal).toMatchObject({ code: 'quota', message: expect.stringContaining('instances') });
    await cleanUp(second.provider, systemClock, '0000000001', instance.externalId);
    await launch(second.provider, launchOf(systemClock, '0000000003'));
    await second.kill();

    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
  });

  it('does not run after SIGTERM, and providers report the missing cloud', async () => {
    const child = run('--port', '0');
    const endpoint = await endpointOf(child);
    child.kill('SIGTERM');
    await once(child, 'exit');
    const failure = await failureOf(() => startProvider(systemClock, undefined, section({ endpoint })));
    expect(failure).toMatchObject({ code: 'transient', message: expect.stringContaining(endpoint) });
  });

  it.each([
    [['--set', 'boot-tim=3'], 2, 'boot-tim'],
    [['--set', 'boot-time=soon'], 2, 'boot-time'],
    [['--set', 'quota=3', '--set', 'quota.cores=3'], 2, 'quota'],
    [['--set', 'zones'], 2, 'zones'],
    [['--port', 'http'], 2, '--port'],
    [['--listen', '203.0.113.1', '--port', '0'], 1, 'EADDRNOTAVAIL'],
  ])('refuses %j with the reason', async (options, exitCode, reason) => {
    const child = run(...options);
    const exited = once(child, 'exit');
    expect(await text(child.stderr)).toContain(reason);
    expect(await exited).toEqual([exitCode, null]);
  });

  it('shows an example in its help', async () => {
    const child = run('--help');
    const help = await text(child.stdout);
    expect(help).toContain('Example');
    expect(help).toContain('--set boot-time=[5,10]');
  });
});

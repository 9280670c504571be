/** Launchers that share a ZooKeeper and a cloud, and the remaining records when one of them ends. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { sleep, systemClock } from '@nodepool/core';
import type { Program } from '@nodepool/harness';
import { Site } from './site.js';

/** Returns the sum of the values of series. */
function sumOf(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}

describe('two launchers', () => {
  let site: Site;
  let endpoint: string;

  beforeEach(async () => {
    site = await Site.start();
    endpoint = await site.cloud(['boot-time=2']);
  });

  afterEach(async () => {
    await site.stop();
  });

  const launcher = (): Promise<Program> => site.launcher({ providers: [{ endpoint }] });

  it('divide the requests without allocating a node twice', async () => {
    const first = await launcher();
    await launcher();

    const { exitCode, summary } = await site.ask(
      ...['--labels', 'debian', '--parallel', '20', '--requests', '50', '--wait-deleted'],
    );

    expect(summary).toMatchObject({ outcomes: { fulfilled: 50 }, problems: [], nodes: 50 });
    expect(exitCode).toBe(0);
    // Both launchers see every request and node, and together they count each once.
    await first.while('both launchers have seen the end of all nodes', 60_000, async (signal) => {
      while (sumOf(await site.metric('nodepool_node_phase_duration_seconds_count', 'phase="deleting"')) < 50) {
        await sleep(systemClock, 100, signal);
      }
    });
    expect(sumOf(await site.metric('nodepool_node_phase_duration_seconds_count', 'phase="deleting"'))).toBe(50);
    expect(sumOf(await site.metric('nodepool_request_duration_seconds_count'))).toBe(50);
  });

  it('lose no request when one of them is killed while instances boot', async () => {
    const first = await launcher();
    const requestor = await site.requestor(
      '--labels',
      'debian',
      '--parallel',
      '20',
      '--requests',
      '20',
      '--wait-deleted',
    );
    await site.nodesExist(first, 20);
    const second = await launcher();
    await first.kill();

    const { exitCode, summary } = await requestor.result;

    expect(summary).toMatchObject({ outcomes: { fulfilled: 20 }, problems: [], nodes: 20 });
    expect(exitCode).toBe(0);
    await site.clean(second);
    expect(await site.instances(endpoint)).toEqual([]);
  });

  it('lose no request when one of them is stopped while instances boot', async () => {
    const first = await launcher();
    const requestor = await site.requestor(
      '--labels',
      'debian',
      '--parallel',
      '20',
      '--requests',
      '20',
      '--wait-deleted',
    );
    await site.nodesExist(first, 20);
    const second = await launcher();

    expect(await first.stop()).toEqual({ code: 0, signal: null });
    const { exitCode, summary } = await requestor.result;

    expect(summary).toMatchObject({ outcomes: { fulfilled: 20 }, problems: [], nodes: 20 });
    expect(exitCode).toBe(0);
    await site.clean(second);
    expect(await site.instances(endpoint)).toEqual([]);
  });

  it('can be the same one, killed and restarted', async () => {
    const killed = await launcher();
    const requestor = await site.requestor('--labels', 'debian,debian', '--wait-deleted');
    await site.nodesExist(killed, 2);
    await killed.kill();
    const started = await launcher();

    const { exitCode, summary } = await requestor.result;

    expect(summary).toMatchObject({ outcomes: { fulfilled: 1 }, problems: [], nodes: 2 });
    expect(exitCode).toBe(0);
    await site.clean(started);
    expect(await site.instances(endpoint)).toEqual([]);
  });
});

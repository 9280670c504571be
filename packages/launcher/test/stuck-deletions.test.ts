/** A cloud that accepts deletions and does not complete them is reported once; its driver says if its nodes count. */

import { beforeEach, describe, expect, it } from '@jest/globals';
import { silentLogger, type LogFields, type Logger, type Provider } from '@nodepool/core';
import type { NodepoolConfig } from '@nodepool/config';
import { DecisionLog } from '@nodepool/status';
import { faultyDriver } from './support/faulty-driver.js';
import { StatusSite } from './support/status-site.js';
import { World, pool, provider } from './support/world.js';
import type { StatusModel } from '@nodepool/status/web';

const REASON = 'namespace n is Terminating: pods remain';

let world: World;
let decisions: DecisionLog;
let messages: (readonly ['info' | 'warn', string, LogFields | undefined])[];
/** Ends the deletions that the cloud has accepted. */
let complete: () => void;
let isAccepted: boolean;

beforeEach(() => {
  world = new World();
  decisions = new DecisionLog({ clock: world.clock });
  world.observation = { decisions };
  messages = [];
  const log: Logger = {
    ...silentLogger,
    ...{ with: () => log, named: () => log },
    info: (message, fields) => void messages.push(['info', message, fields]),
    warn: (message, fields) => void messages.push(['warn', message, fields]),
  };
  world.log = log;
  isAccepted = true;
});

/** A driver whose deletions wait for `complete`. */
function waiting(countsUnendedDeletions: boolean): Partial<NodepoolConfig> {
  const completed = new Promise<void>((resolve) => (complete = resolve));
  return faultyDriver(world.cloud, (each: Provider) => ({
    config: { ...each.config, countsUnendedDeletions },
    cleanupNode: async (cleanup) => {
      if (isAccepted) cleanup.onWaiting?.(REASON);
      else cleanup.onFailedAttempt?.(new Error('409'));
      await completed;
      await each.cleanupNode(cleanup);
    },
  }));
}

/** Serves requests one after another, and returns their nodes, whose deletions the cloud does not complete. */
async function returned(count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) await world.giveBack(await world.served(['small']));
}

const of = (text: RegExp): unknown[] => messages.filter(([, message]) => text.test(message));
const start = (maxServers: number, counts: boolean): Promise<unknown> =>
  world.launcher(
    [provider('demo', [pool('main', ['small'], { 'max-servers': maxServers })])],
    'launcher1',
    waiting(counts),
  );

describe('a deletion that the cloud accepts and does not complete', () => {
  it('is reported once per provider with its reason, and again when none is stuck any more', async () => {
    await start(2, true);
    await returned(2);
    await world.clock.advance(290_000);
    expect(of(/stuck/)).toEqual([]);
    await world.clock.advance(60_000);
    const fields = { node_id: expect.stringMatching(/^\d+$/), reason: REASON, seconds: 300 };
    expect(of(/stuck/)).toMatchObject([
      ['warn', 'The deletion of a node is stuck', fields],
      ['info', 'The deletion of a node is stuck', { reason: REASON }],
    ]);
    const [id = ''] = world.nodes().keys();
    expect(decisions.of('node', id).at(-1)).toMatchObject({ what: 'deletion waits', reason: REASON });
    complete();
    await world.until('they are deleted', () => world.nodes().size === 0);
    expect(of(/^No deletion is stuck/)).toMatchObject([['warn', 'No deletion is stuck any more', { nodes: 2 }]]);
    expect(await world.end()).toEqual([]);
  });

  it('is a problem of the page and of the metrics after five minutes, with the words of the cloud', async () => {
    const sections = [provider('demo', [pool('main', ['small'])])];
    const site = await StatusSite.start(world, sections, { config: waiting(true) });
    await returned(1);
    const problems = async (): Promise<readonly StatusModel.Problem[]> =>
      (await site.get<{ readonly problems: readonly StatusModel.Problem[] }>('overview')).problems;
    await world.clock.advance(290_000);
    expect(await problems()).toEqual([]);
    await world.clock.advance(30_000);
    const [id = ''] = world.nodes().keys();
    const details = [expect.stringContaining(`${id}: `)];
    expect(await problems()).toMatchObject([{ kind: 'stuck-deletions', subject: { id: 'demo' }, details }]);
    expect((await problems())[0]?.details[0]).toContain(REASON);
    expect(await site.metrics(/^nodepool_problems.*stuck-deletions/)).toEqual([expect.stringMatching(/ 1$/)]);
    complete();
    await world.until('it is deleted', () => world.nodes().size === 0);
    expect(await problems()).toEqual([]);
    await site.stop();
    expect(await world.end()).toEqual([]);
  });

  it('counts against the limits by default', async () => {
    await start(1, true);
    await returned(1);
    const id = await world.submit(['small']);
    await world.clock.advance(900_000);
    expect(world.stateOf(id)).toBe('requested');
    complete();
    await world.until('it is served', () => world.stateOf(id) === 'fulfilled');
    expect(await world.end()).toEqual([]);
  });

  it('stops counting after five minutes if its driver says so, for as many nodes as the limit allows', async () => {
    await start(1, false);
    await returned(1);
    const id = await world.submit(['small']);
    await world.clock.advance(290_000);
    expect(world.stateOf(id)).toBe('requested');
    await world.until('it is served', () => world.stateOf(id) === 'fulfilled');
    const [first = ''] = world.nodes().keys();
    expect(decisions.of('node', first).at(-1)?.reason).toBe(`${REASON}; the node no longer counts against the limits`);
    await world.giveBack(id);
    const next = await world.submit(['small']);
    await world.clock.advance(900_000);
    expect(world.stateOf(next)).toBe('requested');
    complete();
    await world.until('it is served', () => world.stateOf(next) === 'fulfilled');
    await world.giveBack(next);
    await world.until('the records are removed', () => world.nodes().size === 0);
    expect(await world.end()).toEqual([]);
  });

  it('counts if the cloud refuses it', async () => {
    isAccepted = false;
    await start(1, false);
    await returned(1);
    const id = await world.submit(['small']);
    await world.clock.advance(400_000);
    expect(world.stateOf(id)).toBe('requested');
    expect(of(/stuck/)).toMatchObject([['warn', 'The deletion of a node is stuck', { reason: '409' }]]);
    complete();
    await world.until('it is served', () => world.stateOf(id) === 'fulfilled');
    expect(await world.end()).toEqual([]);
  });
});

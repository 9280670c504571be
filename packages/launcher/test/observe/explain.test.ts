/** Tests of the launcher's explanations of requests, nodes and labels. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { DecisionLog } from '@nodepool/status';
import {
  explainLabel,
  explainNode,
  explainRequest,
  explanationText,
  type ExplanationSources,
} from '@nodepool/status/web';
import { KeyScanError } from '@nodepool/core';
import { World, pool, provider } from '../support/world.js';

let world: World;
let decisions: DecisionLog;
beforeEach(() => {
  world = new World();
  decisions = new DecisionLog({ clock: world.clock });
  world.observation = { decisions };
});
afterEach(async () => {
  expect(await world.end()).toEqual([]);
});

async function launcher(more = {}, poolMore = {}): Promise<ExplanationSources> {
  const { store, launcher: running } = await world.launcher([
    provider('demo', [pool('main', ['small', 'large'], poolMore)], more),
  ]);
  return world.explanation({ store, launcher: running }, decisions);
}

describe('the explanation of a request', () => {
  it('that was served names the pool that accepted and fulfilled it', async () => {
    const sources = await launcher();
    const id = await world.served(['small']);
    const explanation = explainRequest(sources, id)!;
    expect(explanation.decisions.map(({ by, decision }) => [by, decision])).toEqual([
      ['demo/main', 'can serve it'],
      ['demo/main', 'accepted'],
      ['demo/main', 'launched a node'],
      ['demo/main', 'fulfilled'],
    ]);
    expect(explanation.facts).toMatchObject({ state: 'fulfilled', node_types: ['small'], requestor: 'zuul' });
    expect(explanation.summary).toMatch(/^Fulfilled with 0000000000/);
  });

  it('that waits for quota has one decision for any number of scheduling passes', async () => {
    const sources = await launcher({}, { 'max-servers': 1 });
    await world.served(['small']);
    const id = await world.submit(['large']);
    await world.inState(await world.submit(['small', 'small']), 'failed');
    await world.clock.advance(60_000);
    const explanation = explainRequest(sources, id)!;
    expect(explanation.decisions.map(({ decision, reason }) => [decision, reason])).toEqual([
      ['can serve it', null],
      ['waits for quota', 'pool main of provider demo uses 1 of 1 instances, 1 more is needed'],
    ]);
    expect(explanation.pools).toEqual([
      {
        pool: 'demo/main',
        launcher: 'launcher1',
        own: true,
        says: expect.stringContaining('1 request waits for capacity, this is the next'),
      },
    ]);
  });

  it('that was declined has the reason', async () => {
    const sources = await launcher({}, { 'max-servers': 1 });
    const id = await world.submit(['small', 'small']);
    await world.inState(id, 'failed');
    const explanation = explainRequest(sources, id)!;
    expect(explanation.decisions.at(-1)).toMatchObject({
      by: 'demo/main',
      decision: 'failed it: every pool has declined',
      reason: 'it needs 2 instances, and the limit of pool main of provider demo is 1',
    });
    expect(explanation.pools[0]?.says).toBe(
      'declined it: it needs 2 instances, and the limit of pool main of provider demo is 1',
    );
  });

  it('that was deleted is available, and that of an unknown one is not', async () => {
    const sources = await launcher();
    const id = await world.served(['small']);
    await world.giveBack(id);
    await world.until('the request is gone', () => sources.store.requests.size === 0);
    const gone = explainRequest(sources, id)!;
    expect(gone.summary).toBe('The request is deleted. It was fulfilled with 0000000000.');
    expect(gone.timeline.map(({ phase }) => phase)).toEqual(['order', 'accepted', 'creating', 'handover']);
    expect(explanationText(gone, world.clock.now())).toMatch(/^phases, [\d.]+ s in all:\n {2}order took [\d.]+ s\n/m);
    expect(explainRequest(sources, '200-0000009999')).toBeUndefined();
  });
});

describe('the explanation of a node', () => {
  it('without a login has each attempt', async () => {
    const sources = await launcher({ 'launch-retries': 2 }, { 'host-key-checking': true });
    world.scanner = { scan: () => Promise.reject(new KeyScanError('no answer at port 22')) };
    const id = await world.submit(['small']);
    await world.inState(id, 'failed');
    const explanation = explainNode(sources, '0000000000')!;
    expect(explanation.decisions.map(({ decision, reason }) => [decision, reason]).slice(0, 2)).toEqual([
      ['launch attempt 1 failed', 'no answer at port 22'],
      ['launch attempt 2 failed', 'no answer at port 22'],
    ]);
  });

  it('that is being launched has the driver’s pending operation', async () => {
    world.cloud.configure({ bootTimeMs: [60_000, 60_000] });
    const sources = await launcher();
    const id = await world.submit(['small']);
    await world.until('the instance boots', () => world.cloud.existingInstances().length === 1);
    const explanation = explainNode(sources, '0000000000')!;
    expect(explanation.summary).toContain(`Being launched for request ${id}, attempt 1.`);
    expect(explanation.summary).toMatch(/Provider demo: create for .* waits for \w+/);
    await world.fulfilled(id);
  });

  it('in use that has lost its instance says so, with the kind and the time of the end', async () => {
    const sources = await launcher();
    const { ids } = await world.during(world.requestor.take(await world.served(['small'])));
    const [id = ''] = ids;
    world.cloud.breakInstance(world.nodes().get(id)?.external_id as string);
    await world.until('it is noticed', () => world.nodes().get(id)?.interruption !== undefined);
    await world.clock.advance(10);
    const explanation = explainNode(sources, id)!;
    expect(explanation.summary).toMatch(/In use.* Interrupted \(failed\): its instance .* has failed/);
    expect(explanation.facts).toMatchObject({ interruption: { kind: 'failed', ends_at: null } });
    expect(explanation.decisions.at(-1)).toMatchObject({ by: 'demo/main', decision: 'loses or has lost its instance' });
    expect(explanation.timeline.at(-1)).toMatchObject({ phase: 'in-use', detail: expect.stringContaining('failed') });
  });

  it('that waits for a launcher of its provider says so', async () => {
    const demo = provider('demo', [pool('main', ['small'])]);
    const first = await world.launcher([demo]);
    const request = await world.served(['small']);
    const { store, launcher: other } = await world.launcher(
      [provider('other', [pool('main', ['large'])])],
      'launcher2',
    );
    await first.stop();
    await world.giveBack(request);
    const summary = (): string | undefined =>
      explainNode(world.explanation({ store, launcher: other }, decisions, 'launcher2'), '0000000000')?.summary;
    expect(summary()).toContain('No registered launcher serves provider demo, so the node remains until one does.');
    await world.launcher([demo]);
    expect(summary()).not.toContain('No registered launcher');
    await world.until('it is deleted', () => world.nodes().size === 0);
  });

  it('that is unknown does not exist', async () => {
    expect(explainNode(await launcher(), '0000009999')).toBeUndefined();
  });
});

describe('the explanation of a label', () => {
  it('has its pools, its nodes, its requests, and the usage of the limits', async () => {
    const sources = await launcher({}, { 'max-servers': 2 });
    expect(explainLabel(sources, 'small')!.pools[0]?.says).toContain('; uses nothing of 2 instances');
    await world.served(['small']);
    await world.served(['small']);
    await world.submit(['small']);
    await world.clock.advance(1000);
    const explanation = explainLabel(sources, 'small')!;
    expect(explanation.facts).toMatchObject({ nodes: { ready: 2 }, requests: 1, ready_target: 0 });
    expect(explanation.pools[0]?.says).toContain('uses 2 instances');
    expect(explanation.pools[0]?.says).toContain('of 2 instances');
    expect(explainLabel(sources, 'nonsense')).toBeUndefined();
  });

  it('names no limit that a pool does not have', async () => {
    const sources = await launcher();
    expect(explainLabel(sources, 'small')!.pools[0]?.says).toMatch(/; uses nothing(?:;|$)/);
  });
});

it('is text in which no content of a record can forge lines', async () => {
  const sources = await launcher();
  const id = await world.submit(['nonsense\nrecord: forged']);
  await world.inState(id, 'failed');
  const text = explanationText(explainRequest(sources, id)!, world.clock.now());
  expect(text).toMatch(/^request 200-0000000000\n {2}Failed/);
  expect(text).toContain('demo/main failed it: every pool has declined: no pool has label');
  expect(text.split('\n').filter((line) => line.startsWith('record: forged'))).toEqual([]);
});

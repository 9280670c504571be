/** Tests of the phases of requests and nodes: their order, their reasons, and that they sum exactly to the whole. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { KeyScanError, silentMetrics, sleep, type JsonObject, type Metrics } from '@nodepool/core';
import { type Life, type NodePhase, reportPhases, type RequestLife, Timelines } from '@nodepool/status';
import { World, pool, provider, type RunningLauncher } from '../support/world.js';

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(async () => {
  expect(await world.end()).toEqual([]);
});

function launcher(poolMore: JsonObject = {}, more: JsonObject = {}, hostname = 'launcher1'): Promise<RunningLauncher> {
  return world.launcher([provider('demo', [pool('main', ['small', 'large'], poolMore)], more)], hostname);
}

function requestLife(id: string, hostname = 'launcher1'): RequestLife {
  return world.timelines.get(hostname)!.request(id)!;
}

const phases = (life: Life): NodePhase[] => life.segments.map(({ phase }) => phase);

/** Expects phases without a gap from the beginning to the end, whose durations sum exactly to the whole. */
function expectExact(life: Life): void {
  const segments = life.closed();
  expect(segments[0]?.from).toBe(life.created);
  expect(segments.at(-1)?.to).toBe(life.end);
  for (const [index, { from, to }] of segments.entries()) {
    expect(to).toBeGreaterThanOrEqual(from);
    if (index > 0) expect(from).toBe(segments[index - 1]!.to);
  }
  const sum = [...life.durations(Infinity).values()].reduce((total, ms) => total + ms, 0);
  expect(sum).toBe(life.end! - life.created);
}

describe('the phases of a request', () => {
  it('sum to its whole wait from the view of its requestor', async () => {
    world.scanner = {
      scan: async ({ signal, onConnected }) => {
        await sleep(world.clock, 7000, signal);
        onConnected?.();
        await sleep(world.clock, 500, signal);
        return ['ssh-ed25519 AAAA'];
      },
    };
    await launcher({ 'host-key-checking': true });
    const began = world.clock.now();
    const id = await world.served(['small', 'large']);
    const life = requestLife(id);
    expectExact(life);
    expect(life.end! - life.created).toBe(world.clock.now() - began);
    expect(phases(life)).toEqual(['order', 'accepted', 'creating', 'booting', 'login', 'handover']);
    const durations = life.durations(Infinity);
    expect(durations.get('booting')).toBeGreaterThanOrEqual(6500);
    expect(durations.get('login')).toBe(500);
    expect(life.ended).toMatchObject({ result: 'fulfilled', nodes: ['0000000000', '0000000001'] });
  });

  it('distinguish a wait for a limit from a wait for earlier requests', async () => {
    await launcher({ 'max-servers': 1 });
    const first = await world.served(['small']);
    const taken = await world.during(world.requestor.take(first));
    const second = await world.submit(['small']);
    const third = await world.submit(['small']);
    await world.clock.advance(30_000);
    expect(requestLife(second).phase).toBe('limit');
    expect(requestLife(second).poolWaits()[0]).toMatchObject({
      pool: 'demo/main',
      limit: { scope: 'pool', resource: 'instances', limit: 1, used: 1, needed: 1 },
    });
    expect(requestLife(third).phase).toBe('order');
    await world.during(world.requestor.giveBack(taken));
    await world.fulfilled(second);
    expectExact(requestLife(second));
    expect(requestLife(second).durations(0).get('limit')).toBeGreaterThanOrEqual(29_000);
    expect(requestLife(third).phase).toBe('limit');
    await world.during(world.requestor.withdraw(third));
    await world.clock.advance(1000);
    expectExact(requestLife(third));
    expect(requestLife(third).ended?.result).toBe('cancelled');
  });

  it('mark failed launch attempts with the error message', async () => {
    let scans = 0;
    world.scanner = {
      scan: async ({ signal }) => {
        scans += 1;
        await sleep(world.clock, 1000, signal);
        if (scans === 1) throw new KeyScanError('no host keys');
        return ['ssh-ed25519 AAAA'];
      },
    };
    await launcher({ 'host-key-checking': true });
    const id = await world.served(['small']);
    const life = requestLife(id);
    expectExact(life);
    expect(life.segments.filter(({ failed }) => failed)).toMatchObject([{ phase: 'booting', detail: 'no host keys' }]);
    expect(life.attempts).toMatchObject([
      { number: 1, pool: 'demo/main', label: 'small', error: { code: 'keyscan', message: 'no host keys' } },
      { number: 2, error: undefined },
    ]);
  });

  it('contain the reason of its failure', async () => {
    await launcher({ 'max-servers': 1 });
    const id = await world.submit(['small', 'small']);
    await world.inState(id, 'failed');
    const life = requestLife(id);
    expectExact(life);
    expect(life.ended?.result).toBe('failed');
    expect(life.ended?.reason).toContain('demo/main: ');
    expect(life.ended?.cause).toBe('limit');
  });

  it('come from the records in a launcher that does not serve it', async () => {
    await launcher();
    await world.launcher([provider('elsewhere', [pool('main', ['other'])])], 'launcher2');
    const id = await world.served(['small']);
    await world.clock.advance(1000);
    const life = requestLife(id, 'launcher2');
    expectExact(life);
    expect(phases(life)).toContain('elsewhere');
    expect(phases(life)).not.toContain('creating');
  });
});

describe('the phases of a node', () => {
  it('continue until its record is deleted', async () => {
    await launcher();
    const id = await world.served(['small']);
    await world.clock.advance(5000);
    const taken = await world.during(world.requestor.take(id));
    await world.clock.advance(60_000);
    await world.during(world.requestor.giveBack(taken));
    await world.until('it is deleted', () => world.nodes().size === 0);
    const life = world.timelines.get('launcher1')!.node('0000000000')!;
    expectExact(life);
    expect(phases(life)).toEqual(['accepted', 'creating', 'handover', 'ready', 'in-use', 'deleting']);
    expect(life.durations(0).get('in-use')).toBe(60_000);
    const resources = { instances: 1, cores: 1, ram: 1024 };
    const place = { labels: ['small'], provider: 'demo', pool: 'main' };
    expect(life.facts).toEqual({ id: '0000000000', ...place, request: id, resources });
  });
});

type Observed = Record<string, string> & { readonly metric: string; readonly ms: number };

function observer(): { readonly metrics: Metrics; readonly observed: Observed[] } {
  const observed: Observed[] = [];
  const metrics: Metrics = {
    ...silentMetrics,
    observe: (duration, labels, ms) => observed.push({ metric: duration.name, ...labels, ms }),
  };
  return { metrics, observed };
}

it('histograms contain the phases', async () => {
  const { metrics, observed } = observer();
  await launcher();
  const end = reportPhases(world.timelines.get('launcher1')!, metrics);
  const id = await world.served(['small']);
  end();
  const life = requestLife(id);
  const phaseMs = observed.filter(({ metric }) => metric === 'nodepool_request_phase_duration_seconds');
  expect(phaseMs.reduce((sum, { ms }) => sum + ms, 0)).toBe(life.end! - life.created);
  expect(phaseMs.map(({ phase, provider: from, label }) => [phase, from, label])).toContainEqual([
    'creating',
    'demo',
    'small',
  ]);
  expect(observed).toContainEqual(
    expect.objectContaining({ metric: 'nodepool_node_phase_duration_seconds', phase: 'creating', provider: 'demo' }),
  );
  expect(observed).toContainEqual(
    expect.objectContaining({ metric: 'nodepool_request_duration_seconds', result: 'fulfilled', label: 'small' }),
  );
});

describe('histograms of several launchers', () => {
  const HOSTS = ['launcher1', 'launcher2', 'launcher3'] as const;
  const WAIT = 'nodepool_request_duration_seconds';
  let observed: Observed[];

  /** Starts two launchers with the same pool and one with another, and observes all of them. */
  async function launchers(): Promise<readonly RunningLauncher[]> {
    const started = [
      await launcher({ 'max-servers': 1 }, {}, HOSTS[0]),
      await launcher({ 'max-servers': 1 }, {}, HOSTS[1]),
      await world.launcher([provider('elsewhere', [pool('main', ['other'])])], HOSTS[2]),
    ];
    const each = observer();
    for (const host of HOSTS) reportPhases(world.timelines.get(host)!, each.metrics);
    observed = each.observed;
    return started;
  }

  const ends = (): unknown[] =>
    observed.filter(({ metric }) => metric === WAIT).map(({ result, provider: from }) => [result, from]);
  const phasesOf = (kind: 'request' | 'node'): unknown[] =>
    observed.filter(({ metric }) => metric === `nodepool_${kind}_phase_duration_seconds`).map(({ phase }) => phase);

  it('contain each request and node once, and no phase in which another launcher did the work', async () => {
    await launchers();
    const first = await world.served(['small']);
    await world.clock.advance(5000);
    expect(ends()).toEqual([['fulfilled', 'demo']]);
    expect(phasesOf('request')).toEqual(['order', 'accepted', 'creating', 'handover']);

    const waiting = await world.submit(['small']);
    await world.clock.advance(5000);
    await world.during(world.requestor.withdraw(waiting));
    await world.clock.advance(5000);
    const failed = await world.submit(['small', 'small']);
    await world.inState(failed, 'failed');
    await world.clock.advance(5000);
    expect(ends().slice(1)).toEqual([
      ['cancelled', ''],
      ['failed', ''],
    ]);

    const taken = await world.during(world.requestor.take(first));
    await world.clock.advance(5000);
    await world.during(world.requestor.giveBack(taken));
    await world.until('the node is deleted', () => world.nodes().size === 0);
    await world.clock.advance(5000);
    expect(phasesOf('node')).toEqual(['accepted', 'creating', 'handover', 'ready', 'in-use', 'deleting']);
  });

  it('contain withdrawn requests once, whether a launcher had accepted them or not', async () => {
    world.cloud.configure({ bootTimeMs: [600_000, 600_000] });
    await launchers();
    // The ids of requests that wait choose the launchers that report them.
    for (let requests = 1; requests <= 6; requests += 1) {
      const accepted = await world.submit(['small']);
      const waiting = await world.submit(['small']);
      await world.clock.advance(10_000);
      await world.during(world.requestor.withdraw(waiting));
      await world.during(world.requestor.withdraw(accepted));
      await world.until('the node is deleted', () => world.nodes().size === 0);
      expect(ends()).toEqual(Array.from({ length: 2 * requests }, () => ['cancelled', '']));
    }
  });

  it('contain the later phases of a node once whose launcher has ended', async () => {
    const started = await launchers();
    const id = await world.served(['small']);
    const taken = await world.during(world.requestor.take(id));
    await world.clock.advance(5000);
    const at = HOSTS.findIndex((host) => world.timelines.get(host)!.request(id)!.pool !== undefined);
    await started[at]!.stop();
    await world.clock.advance(60_000);
    observed.length = 0;
    await world.during(world.requestor.giveBack(taken));
    await world.until('the node is deleted', () => world.nodes().size === 0);
    await world.clock.advance(5000);
    expect(phasesOf('node')).toEqual(['in-use', 'deleting']);
  });

  it('contain the phases of a node once whose launcher is not connected', async () => {
    const started = await launchers();
    const id = await world.served(['small']);
    const taken = await world.during(world.requestor.take(id));
    await world.clock.advance(5000);
    const at = HOSTS.findIndex((host) => world.timelines.get(host)!.request(id)!.pool !== undefined);
    world.server.partition(started[at]!.zk);
    await world.clock.advance(60_000);
    observed.length = 0;
    await world.during(world.requestor.giveBack(taken));
    await world.until('the node is deleted', () => world.nodes().size === 0);
    world.server.heal(started[at]!.zk);
    await world.clock.advance(60_000);
    expect(phasesOf('node')).toEqual(['in-use', 'deleting']);
  });

  it('contain the phases of a node that end while all launchers are not connected for a moment', async () => {
    const started = await launchers();
    const id = await world.served(['small']);
    const taken = await world.during(world.requestor.take(id));
    await world.clock.advance(5000);
    for (const { zk } of started) world.server.partition(zk);
    observed.length = 0;
    await world.during(world.requestor.giveBack(taken));
    for (const { zk } of started) world.server.heal(zk);
    await world.until('the node is deleted', () => world.nodes().size === 0);
    await world.clock.advance(5000);
    expect(phasesOf('node')).toEqual(['in-use', 'deleting']);
  });

  /** Returns the results that the launchers report, by request. */
  function reportedEnds(): Map<string, unknown[]> {
    const reported = new Map<string, unknown[]>();
    for (const timelines of world.timelines.values()) {
      timelines.events.requestEnded.on(({ facts: { id }, isReported, ended }) => {
        if (isReported) reported.set(id, [...(reported.get(id) ?? []), ended?.result]);
      });
    }
    return reported;
  }

  it('contain a served request that its requestor deletes at once, and the other launchers claim no end', async () => {
    await launchers();
    const reported = reportedEnds();
    const id = await world.deletedWhenServed(['small']);
    await world.clock.advance(5000);
    expect([...reported]).toEqual([[id, ['fulfilled']]]);
    const results = HOSTS.map((host) => requestLife(id, host).ended?.result);
    expect(results.sort()).toEqual(['fulfilled', 'unseen', 'unseen']);
  });

  it('contain a request once that other launchers served while its first launcher was cut off', async () => {
    world.cloud.configure({ bootTimeMs: [60_000, 60_000] });
    const started = await launchers();
    const reported = reportedEnds();
    const id = await world.submit(['small']);
    await world.clock.advance(10_000);
    const at = HOSTS.findIndex((host) => requestLife(id, host).pool !== undefined);
    world.server.partition(started[at]!.zk);
    await world.inState(id, 'fulfilled');
    const waiting = await world.submit(['small']);
    await world.clock.advance(10_000);
    await world.during(world.requestor.withdraw(waiting));
    await world.giveBack(id);
    await world.clock.advance(60_000);
    world.server.heal(started[at]!.zk);
    await world.clock.advance(60_000);
    expect([...reported]).toEqual([
      [id, ['fulfilled']],
      [waiting, ['cancelled']],
    ]);
    expect(requestLife(id, HOSTS[at]).ended?.result).toBe('unseen');
  });

  it('contain a fulfilled request once if the answer of ZooKeeper to its fulfilment is lost', async () => {
    const started = await launchers();
    const reported = reportedEnds();
    const ids: string[] = [];
    for (const when of ['before-applied', 'after-applied'] as const) {
      for (const { zk } of started) {
        world.server.loseNextWrite(
          zk,
          when,
          (request) =>
            request.type === 'multi' &&
            request.ops.some((op) => op.type === 'set' && Buffer.from(op.data).includes('"fulfilled"')),
        );
      }
      const id = await world.served(['small']);
      await world.clock.advance(5000);
      await world.giveBack(id);
      await world.until('the node is deleted', () => world.nodes().size === 0);
      ids.push(id);
    }
    expect([...reported]).toEqual(ids.map((id) => [id, ['fulfilled']]));
  });

  it('leave out a request that another implementation has failed', async () => {
    const [{ zk }] = (await launchers()) as [RunningLauncher, ...RunningLauncher[]];
    const id = await world.submit(['small', 'unknown']);
    const path = `/nodepool/requests/${id}`;
    const record = JSON.parse(Buffer.from((await world.during(zk.get(path))).data).toString()) as JsonObject;
    const failed = { ...record, state: 'failed', declined_by: ['nl-python-1234-pool'] };
    await world.during(zk.set(path, Buffer.from(JSON.stringify(failed))));
    await world.clock.advance(5000);
    expect(ends()).toEqual([]);
  });
});

it('histograms leave out what ended before the launcher first saw it, so that a restart repeats nothing', async () => {
  const { store } = await launcher();
  const id = await world.served(['small']);
  const failed = await world.submit(['unknown'], { provider: 'demo' });
  await world.inState(failed, 'failed');
  await world.clock.advance(60_000);

  const { metrics, observed } = observer();
  const { clock } = world;
  const timelines = new Timelines({ store, clock, onError: (error) => expect(error).toBeUndefined() });
  const end = reportPhases(timelines, metrics);
  timelines.start();
  expect(observed).toEqual([]);
  expect([timelines.request(id)?.ended?.result, timelines.request(failed)?.ended?.result]).toEqual([
    'fulfilled',
    'failed',
  ]);
  expect(phases(timelines.node('0000000000')!)).toEqual(['elsewhere', 'ready']);

  await world.giveBack(id);
  await world.until('it is deleted', () => world.nodes().size === 0);
  expect(observed.map(({ phase }) => phase)).toEqual(['ready', 'in-use', 'deleting']);
  expect(observed[0]?.ms).toBeGreaterThanOrEqual(60_000);
  end();
  timelines.stop();
});

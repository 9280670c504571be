/** The simulated OpenStack uses a virtual clock for all durations. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { seededRandom, VirtualClock } from '@nodepool/core/testing';
import { TestBed, startSimulatedOpenStack, textOf, type SimulatedOpenStack } from '../src/index.js';

let clock: VirtualClock;
let cloud: SimulatedOpenStack;
let bed: TestBed;

beforeEach(async () => {
  clock = new VirtualClock();
  const settings = { bootMs: 60_000, deleteMs: 10_000, tokenTtlMs: 600_000 };
  cloud = await startSimulatedOpenStack({ clock, random: seededRandom(3), settings });
  bed = await TestBed.open(cloud.cloudsYaml);
});

afterEach(async () => {
  await cloud.close();
});

const states = (): readonly string[] =>
  cloud.inspect.servers().map(({ status, taskState }) => `${status} ${taskState ?? '-'}`);

describe('a server', () => {
  it('boots in the configured time plus the delay in its metadata, and is deleted in the configured time', async () => {
    await bed.createServer('plain');
    await bed.createServer('slow', { metadata: { ostack_spawn_delay: '30' } });

    expect(states()).toEqual(['BUILD scheduling', 'BUILD scheduling']);
    await clock.advance(59_000);
    expect(states()).toEqual(['BUILD spawning', 'BUILD spawning']);
    await clock.advance(1000);
    expect(states()).toEqual(['ACTIVE -', 'BUILD spawning']);
    await clock.advance(30_000);
    expect(states()).toEqual(['ACTIVE -', 'ACTIVE -']);

    const [plain] = cloud.inspect.servers();
    await bed.demo.delete('compute', `/servers/${plain?.id ?? ''}`);
    expect(states()).toEqual(['ACTIVE deleting', 'ACTIVE -']);
    await clock.advance(10_000);
    expect(states()).toEqual(['ACTIVE -']);
  });

  it('leaves nothing behind if it is deleted during its boot', async () => {
    const id = textOf((await bed.createServer('hasty')).member('server')['id']);
    await clock.advance(30_000);
    await bed.demo.delete('compute', `/servers/${id}`);
    await clock.advance(10_000);

    expect(cloud.inspect.leftovers()).toMatchObject({ servers: 0, ports: 0 });
    await clock.advance(600_000);
    expect(cloud.inspect.servers()).toEqual([]);
  });
});

describe('a token', () => {
  it('is valid for the configured time', async () => {
    await clock.advance(599_000);
    expect((await bed.demo.get('compute', '/limits')).status).toBe(200);
    await clock.advance(1000);
    expect((await bed.demo.get('compute', '/limits')).status).toBe(401);
  });
});

describe('a call', () => {
  it('lasts as long as the configured latency, and takes effect half-way', async () => {
    cloud.configure({ latencyMs: 1000 });
    const asked = bed.createServer('late');
    // The call arrives in real time.
    while (clock.nextDueAt === undefined) await new Promise((resolve) => setImmediate(resolve));
    expect(cloud.inspect.servers()).toEqual([]);
    await clock.advance(500);
    expect(cloud.inspect.servers()).toHaveLength(1);
    await clock.advance(500);
    expect((await asked).status).toBe(202);
  });
});

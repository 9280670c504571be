/** A cloud in trouble costs requests seconds while another one can serve them, and a refusal that passes fails none. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  AuthError,
  CertificateError,
  RefusedError,
  ThrottledError,
  TransientError,
  type NodeRequestHandler,
  type Provider,
} from '@nodepool/core';
import { DecisionLog } from '@nodepool/status';
import type { NodepoolConfig } from '@nodepool/config';
import { faultyDriver } from './support/faulty-driver.js';
import { REQUESTS, World, pool, provider } from './support/world.js';

let world: World;
let decisions: DecisionLog;
/** Number of launches that reached the driver of provider `demo`. */
let launches: number;
let overrides: (provider: Provider) => Partial<Provider>;

const drivers = (): Partial<NodepoolConfig> => faultyDriver(world.cloud, (each) => overrides(each));
const demo = (poolMore = {}) => provider('demo', [pool('main', ['small'], poolMore)]);
const cut = new TransientError('the connection was refused', { outcome: 'not-applied' });
const silent = (): Promise<never> => new Promise(() => undefined);

beforeEach(() => {
  world = new World();
  decisions = new DecisionLog({ clock: world.clock });
  world.observation = { decisions };
  launches = 0;
});

afterEach(async () => {
  expect(await world.end()).toEqual([]);
});

async function ended(id: string): Promise<unknown> {
  await world.until(`${id} has ended`, () => !['requested', 'pending'].includes(String(world.stateOf(id))));
  return world.stateOf(id);
}

/** Replaces the launches of provider `demo`. */
function launchesBy(launch: NodeRequestHandler['launch'], each: Provider): Partial<Provider> {
  return {
    getRequestHandler: (...args) => {
      const handler = each.getRequestHandler(...args);
      if (each.config.name !== 'demo') return handler;
      const counted: NodeRequestHandler['launch'] = (node) => {
        launches += 1;
        return launch(node);
      };
      return new Proxy(handler, {
        get: (target, name): unknown => (name === 'launch' ? counted : Reflect.get(target, name)),
      });
    },
  };
}

/** Fails the launches of provider `demo` if `failure` returns a failure. */
function failing(each: Provider, failure: () => Promise<never> | undefined): Partial<Provider> {
  return {
    getRequestHandler: (...args) => {
      const handler = each.getRequestHandler(...args);
      const { getRequestHandler } = launchesBy((node) => failure() ?? handler.launch(node), each);
      return getRequestHandler?.(...args) ?? handler;
    },
  };
}

describe('a cloud in trouble beside a healthy one', () => {
  let isAway: boolean;
  let listing: () => Promise<never> | undefined;
  let create: () => Promise<never> | undefined;

  beforeEach(() => {
    isAway = false;
    listing = () => (isAway ? Promise.reject(cut) : undefined);
    create = listing;
    overrides = (each) => ({
      listNodes: (...args) => (each.config.name === 'demo' ? listing() : undefined) ?? each.listNodes(...args),
      cleanupLeakedResources: (...args) =>
        (each.config.name === 'demo' ? listing() : undefined) ?? each.cleanupLeakedResources(...args),
      ...failing(each, () => create()),
    });
  });

  const other = provider('other', [pool('main', ['small'], { priority: 100 })]);
  const preferred = demo({ priority: 10 });

  async function served(count: number): Promise<number> {
    const began = world.clock.monotonic();
    const ids: string[] = [];
    while (ids.length < count) ids.push(await world.submit(['small']));
    for (const id of ids) {
      expect(await ended(id)).toBe('fulfilled');
      expect(world.records(REQUESTS).get(id)).not.toHaveProperty('declined_by.0');
    }
    return world.clock.monotonic() - began;
  }

  it.each([
    ['refuses connections', (): Promise<never> => Promise.reject(cut)],
    ['refuses the credentials', () => Promise.reject(new AuthError('401'))],
    ['has an expired certificate', () => Promise.reject(new CertificateError('CERT_HAS_EXPIRED'))],
    ['demands a wait of ten minutes', () => Promise.reject(new ThrottledError('503', { retryAfterMs: 600_000 }))],
    ['does not answer', silent],
  ])('costs a request seconds if it %s and is preferred, and is offered nothing until it recovers', async (_, how) => {
    world.cloud.configure({ bootTimeMs: [5000, 5000] });
    const running = await world.launcher([preferred, other], 'launcher1', drivers());
    isAway = true;
    listing = () => (isAway ? how() : undefined);
    create = listing;
    expect(await served(8)).toBeLessThan(30_000);
    await world.clock.advance(30_000);
    launches = 0;
    for (let index = 0; index < 5; index += 1) {
      expect(await served(2)).toBeLessThan(10_000);
      await world.clock.advance(60_000);
    }
    expect(launches).toBe(0);
    expect(running.launcher.activity()[0]).toMatchObject({ trouble: { labels: undefined } });
    isAway = false;
    await world.clock.advance(90_000);
    // A call that began before the recovery may hang for five minutes, which opens no breaker.
    for (let minute = 0; minute < 6; minute += 0.25) {
      expect(running.launcher.activity()[0]).toMatchObject({ state: 'serving' });
      await world.clock.advance(15_000);
    }
    await served(2);
    expect(launches).toBeGreaterThan(0);
    await world.clock.advance(10_000);
    expect(running.launcher.activity()[0]).toMatchObject({ state: 'serving', trouble: undefined });
  });

  it('alone, and with a demand for ten minutes, is asked again after a minute', async () => {
    await world.launcher([demo()], 'launcher1', drivers());
    isAway = true;
    create = () => (isAway ? Promise.reject(new ThrottledError('503', { retryAfterMs: 600_000 })) : undefined);
    listing = create;
    const id = await world.submit(['small']);
    await world.until('it waits', () => decisions.of('request', id).at(-1)?.what === 'waits for capacity');
    expect(decisions.of('request', id).at(-1)?.reason).toMatch(
      /^provider demo demands fewer calls since .* of 600 s \(Retry-After\)\), next probe at /,
    );
    isAway = false;
    const began = world.clock.monotonic();
    expect(await ended(id)).toBe('fulfilled');
    expect(world.clock.monotonic() - began).toBeLessThan(100_000);
  });

  it('counts failures of steps that the driver repeats, although no launch ends', async () => {
    const running = await world.launcher([demo(), other], 'launcher1', drivers());
    const submitted = [];
    overrides = (each) => ({
      ...launchesBy(async (node) => {
        await node.save({ externalId: 'unknown', machine: null });
        for (let failures = 0; failures < 3; failures += 1) node.onRetry?.(cut);
        return silent();
      }, each),
      listNodes: () => Promise.reject(cut),
    });
    for (let index = 0; index < 2; index += 1) submitted.push(await world.submit(['small']));
    await world.until('it is noticed', () => running.launcher.activity()[0]?.state === 'unreachable');
    expect(submitted.filter((id) => world.stateOf(id) === 'pending')).not.toEqual([]);
  });
});

describe('a label that the cloud refuses for a while', () => {
  const refused = new RefusedError('the image is being replicated');
  let failure: Error | undefined;

  beforeEach(() => {
    failure = undefined;
    overrides = (each) => failing(each, () => failure && Promise.reject(failure));
  });

  it('for two minutes fails no request, and is served elsewhere if possible', async () => {
    await world.launcher([demo(), provider('other', [pool('main', ['large'])])], 'launcher1', drivers());
    failure = refused;
    const id = await world.submit(['small']);
    const elsewhere = await world.submit(['large']);
    await world.clock.advance(120_000);
    expect(world.stateOf(id)).toMatch(/^requested|pending$/);
    expect(await ended(elsewhere)).toBe('fulfilled');
    failure = undefined;
    expect(await ended(id)).toBe('fulfilled');
  });

  it('after the creation is served elsewhere at once, without a second instance', async () => {
    const other = provider('other', [pool('main', ['small'], { priority: 100 })]);
    await world.launcher([demo({ priority: 10 }), other], 'launcher1', drivers());
    overrides = (each) =>
      launchesBy(async (node) => {
        await node.save({ externalId: 'refused', machine: null });
        node.onRetry?.(refused);
        return silent();
      }, each);
    const began = world.clock.monotonic();
    const id = await world.submit(['small']);
    expect(await ended(id)).toBe('fulfilled');
    expect(world.clock.monotonic() - began).toBeLessThan(40_000);
    await world.clock.advance(60_000);
    expect([...world.nodes().values()]).toMatchObject([{ provider: 'other', allocated_to: id }]);
    expect(launches).toBe(1);
  });

  it('for more than five minutes and in several attempts is declined, and then tried again', async () => {
    await world.launcher([demo()], 'launcher1', drivers());
    failure = refused;
    const began = world.clock.monotonic();
    expect(await ended(await world.submit(['small']))).toBe('failed');
    expect(world.clock.monotonic() - began).toBeGreaterThanOrEqual(300_000);
    expect(launches).toBeGreaterThan(3);
    failure = undefined;
    await world.clock.advance(120_000);
    expect(await ended(await world.submit(['small']))).toBe('fulfilled');
  });
});

/** Spot interruptions: the notices of the queue, and instances that AWS has taken away. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { TransientError, type Instance, type JsonObject, type ProviderContext } from '@nodepool/core';
import { callOn } from '@nodepool/driver-kit';
import { interruptionIn } from '../src/interruptions.js';
import { idOf, openCloud, section, type OpenCloud } from './cloud.js';
import { TestProvider } from './provider.js';

let open: OpenCloud;
let test: TestProvider | undefined;

beforeEach(async () => {
  open = await openCloud();
});

afterEach(async () => {
  await test?.stop();
  test = undefined;
  await open.close();
});

/** Starts a provider with spot instances. `checkInstances` is what the launcher offers to it. */
async function started(
  checkInstances: ProviderContext['checkInstances'],
  change: JsonObject = { 'interruption-queue': open.cloud.queueUrl },
): Promise<TestProvider> {
  test = new TestProvider(open, section(open, change, { 'use-spot': true }));
  const start = test.provider.start.bind(test.provider);
  test.provider.start = (context) => start({ ...context, checkInstances });
  return test.start();
}

async function listed({ provider }: TestProvider, id: unknown): Promise<Instance | undefined> {
  return (await provider.listNodes(callOn(open.time.clock))).find(({ externalId }) => externalId === id);
}

describe('a notice of the queue', () => {
  it('lets the launcher list the instances at once, and is deleted when that is done', async () => {
    let checks = 0;
    let done: () => void = () => undefined;
    const provider = await started(() => {
      checks += 1;
      return new Promise((resolve) => (done = resolve));
    });
    const { externalId } = await provider.launch();
    const at = open.time.clock.now();
    open.cloud.interruptSpot(idOf(externalId));
    await open.time.until(() => checks === 1, 10_000);
    expect(await listed(provider, externalId)).toMatchObject({ ready: false, failed: expect.any(String) });
    const { reclaimed } = (await listed(provider, externalId)) ?? {};
    expect(Math.abs((reclaimed?.endsAt ?? 0) - (at + 120_000))).toBeLessThanOrEqual(1000);
    await open.time.until(() => false, 10_000);
    expect(open.cloud.inspect.messages()).toBe(1);
    done();
    await open.time.until(() => open.cloud.inspect.messages() === 0, 10_000);
    expect([open.cloud.inspect.messages(), checks]).toEqual([0, 1]);
  });

  it('arrives again while the launcher cannot list the instances', async () => {
    let checks = 0;
    const provider = await started(() => {
      checks += 1;
      return checks > 1 ? Promise.resolve() : Promise.reject(new TransientError('no list'));
    });
    const { externalId } = await provider.launch();
    open.cloud.interruptSpot(idOf(externalId));
    await open.time.until(() => open.cloud.inspect.messages() === 0 && checks > 0, 300_000);
    expect([open.cloud.inspect.messages(), checks]).toEqual([0, 2]);
  });

  it('of another kind, or that is no event, is deleted without a list', async () => {
    let checks = 0;
    await started(() => Promise.resolve(void (checks += 1)));
    for (const body of ['no JSON', '[]', '{"detail-type": "EC2 Instance State-change Notification"}']) {
      open.cloud.sendMessage(body);
    }
    await open.time.until(() => open.cloud.inspect.messages() === 0, 60_000);
    expect([open.cloud.inspect.messages(), checks]).toEqual([0, 0]);
  });

  it('without a time ends two minutes after it was received', () => {
    const event = { 'detail-type': 'EC2 Spot Instance Interruption Warning', detail: { 'instance-id': 'i-1' } };
    expect(interruptionIn(JSON.stringify(event), 5000)).toEqual({ instanceId: 'i-1', endsAt: 125_000 });
    const time = new Date(60_000).toISOString();
    expect(interruptionIn(JSON.stringify({ ...event, time }), 5000)?.endsAt).toBe(180_000);
  });
});

describe('without a queue', () => {
  it('an instance that AWS has terminated is listed as taken away, and one of another end is not', async () => {
    const provider = await started(undefined, {});
    const [first, second] = [await provider.launch('0000000001'), await provider.launch('0000000002')];
    open.cloud.interruptSpot(idOf(first.externalId));
    open.cloud.endInstance(idOf(second.externalId), 'terminated', 'Client.UserInitiatedShutdown');
    await open.time.until(() => false, 130_000);
    const [taken, ended] = [await listed(provider, first.externalId), await listed(provider, second.externalId)];
    expect([taken?.deleted, ended?.deleted]).toEqual([true, true]);
    expect(taken?.reclaimed).toBeDefined();
    expect(ended?.reclaimed).toBeUndefined();
  });
});

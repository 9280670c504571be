/** Lists of instances with their sizes, the needs of labels, and quotas. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import type { QuotaInformation } from '@nodepool/core';
import { failureOf } from '@nodepool/driver-kit';
import { acceleratorMetric, CORE_METRICS } from '../src/quota.js';
import { addForeignInstances, OTHER_ZONE, section, twoZones } from './cloud.js';
import { openWith, type TestProvider } from './provider.js';

const DEFINITIONS = join(__dirname, '../../../tooling/simulated-gce/definitions/compute.json');

describe('the need of a label', () => {
  const need = (provider: TestProvider): Promise<QuotaInformation> =>
    provider.end(
      provider.provider.getQuotaForLabel?.('main', 'small', provider.call()) ?? Promise.reject(new Error('no needs')),
    );

  it('is known if only another zone of the pool than that of the provider has the machine type', async () => {
    const zone = 'us-central1-c';
    const zones = [zone, 'us-central1-f'];
    const { provider } = await openWith(section({ zone }, { 'instance-type': 't2a-standard-1' }, { zones }));
    expect((await need(provider)).toResources()).toEqual({ instances: 1, cores: 1, ram: 4096, T2A_CPUS: 1 });
    const launched = await provider.launch('0000000001', { availabilityZone: 'us-central1-f' });
    expect(launched.az).toBe('us-central1-f');
  });

  it('is a configuration error if no zone of the pool has the machine type', async () => {
    const label = { 'instance-type': 't2a-standard-1' };
    const { provider } = await openWith(section({}, label, { zones: ['us-central1-c'] }));
    const error = await failureOf(need(provider));
    expect(error.code).toBe('configuration');
    expect(error.message).toContain('label small: machine type t2a-standard-1 does not exist in us-central1-c');
  });
});

describe('quotas', () => {
  it('of 0 for preemptible resources are omitted, because these count as regular ones then', async () => {
    const { cloud, provider } = await openWith(section());
    cloud.setLimits({ INSTANCES: 10, CPUS: 24, PREEMPTIBLE_CPUS: 0, NVIDIA_T4_GPUS: 0, SNAPSHOTS: 5 });
    const { provider: of } = provider;
    if (of.getQuotaLimits === undefined) throw new Error('the provider has no limits');
    const limits = await provider.end(of.getQuotaLimits(provider.call()));
    expect(limits.toResources()).toMatchObject({ instances: 10, CPUS: 24, NVIDIA_T4_GPUS: 0 });
    expect(limits.get('PREEMPTIBLE_CPUS')).toBe(Infinity);
  });

  it('have the metric names that Google publishes', () => {
    const { schemas } = JSON.parse(readFileSync(DEFINITIONS, 'utf8')) as {
      schemas: { Quota: { properties: { metric: { enum: string[] } } } };
    };
    const metrics = [
      ...CORE_METRICS.values(),
      ...['nvidia-tesla-t4', 'nvidia-tesla-v100', 'nvidia-tesla-p4'].map(acceleratorMetric),
    ];
    expect(schemas.Quota.properties.metric.enum).toEqual(expect.arrayContaining(metrics));
  });
});

describe('the list of instances', () => {
  it('fails if the list of a zone fails, until the zone has failed three times', async () => {
    const { cloud, provider } = await openWith(twoZones);
    const list = (): Promise<readonly unknown[]> => provider.end(provider.provider.listNodes(provider.call()));
    await list();
    cloud.faults.add({
      on: ({ operation, path }) => operation === 'instances.list' && path.includes('us-central1-b'),
      fault: { kind: 'status', status: 503 },
      times: Infinity,
    });
    for (let failure = 1; failure < 3; failure += 1) expect((await failureOf(list())).code).toBe('transient');
    expect(await list()).toEqual([]);
  });

  it('contains the last known instances of a zone that does not answer', async () => {
    const { cloud, provider } = await openWith(twoZones);
    await provider.launch('0000000001');
    cloud.faults.add({
      on: ({ operation, path }) => operation === 'instances.list' && path.includes('us-central1-a'),
      fault: { kind: 'status', status: 503 },
      times: Infinity,
    });
    expect((await provider.launch('0000000002', { availabilityZone: 'us-central1-b' })).az).toBe('us-central1-b');
    const listed = await provider.end(provider.provider.listNodes(provider.call()));
    expect(listed.map(({ az }) => az).toSorted()).toEqual(['us-central1-a', 'us-central1-b']);
  });

  it.each([
    ['does not fail if a zone that no pool uses', OTHER_ZONE, []],
    ['fails if a zone of a pool', 'us-central1-b', 'transient'],
  ])('%s has not answered since the start', async (_what, failing, expected) => {
    const { cloud, provider } = await openWith(twoZones);
    cloud.faults.add({
      on: ({ operation, path }) => operation === 'instances.list' && path.includes(failing),
      fault: { kind: 'status', status: 503 },
      times: Infinity,
    });
    const list = (): Promise<readonly unknown[]> => provider.end(provider.provider.listNodes(provider.call()));
    for (let failure = 1; failure < 3; failure += 1) expect((await failureOf(list())).code).toBe('transient');
    const result = expected === 'transient' ? (await failureOf(list())).code : await list();
    expect(result).toEqual(expected);
  });

  it('is not read for each missing instance because a zone that no pool uses has never answered', async () => {
    const { cloud, provider, time } = await openWith(twoZones);
    const unanswered = cloud.faults.add({
      on: ({ operation, path }) => operation === 'instances.list' && path.includes(OTHER_ZONE),
      fault: { kind: 'status', status: 503 },
      times: Infinity,
    });
    const list = (): Promise<readonly unknown[]> => provider.end(provider.provider.listNodes(provider.call()));
    for (let failure = 1; failure < 3; failure += 1) await failureOf(list());
    await list();
    const lists = cloud.calls.count('instances.list');
    await list();
    // The two zones of the pool; the failing zone is listed once a minute.
    expect(cloud.calls.count('instances.list')).toBe(lists + 2);
    await provider.end(
      Promise.all(['1', '2', '3'].map((id) => provider.beginCleanUp(`np000000000${id}-00000000`, `000000000${id}`))),
    );
    expect(cloud.calls.count('instances.delete')).toBe(3);
    expect(cloud.calls.count('instances.list')).toBe(lists + 2);
    unanswered.remove();
    await time.until(() => false, 60_000);
    await list();
    expect(cloud.calls.count('instances.list')).toBe(lists + 6);
  });

  it.each([{}, { status: 'ok' }, { kind: 'compute#imageList' }, { items: [] }])(
    'is not empty because a proxy answers with JSON of its own: %j',
    async (json) => {
      const { cloud, provider } = await openWith(twoZones);
      await provider.launch('0000000001');
      const list = (): Promise<readonly unknown[]> => provider.end(provider.provider.listNodes(provider.call()));
      const fault = cloud.faults.add({
        on: 'instances.list',
        fault: { kind: 'proxy', status: 200, json },
        times: Infinity,
      });
      const error = await failureOf(list());
      expect(error).toMatchObject({ code: 'transient', outcome: 'not-applied' });
      expect(error.message).toContain('instances.list: the answer is not a compute#instanceList');
      fault.remove();
      expect(await list()).toHaveLength(1);
    },
  );

  it('fails if no zone of the pools answers', async () => {
    const { cloud, provider } = await openWith(twoZones);
    cloud.faults.add({ on: 'instances.list', fault: { kind: 'status', status: 503 }, times: Infinity });
    expect(await failureOf(provider.end(provider.provider.listNodes(provider.call())))).toMatchObject({
      code: 'transient',
    });
  });

  it('contains foreign instances with their sizes', async () => {
    const { cloud, provider } = await openWith(undefined, { pageSize: 2 });
    await addForeignInstances(cloud, 5);
    const listed = await provider.end(provider.provider.listNodes(provider.call()));
    expect(listed).toHaveLength(5);
    for (const { resources, tags } of listed) {
      expect(resources).toEqual({ instances: 1, cores: 2, ram: 1024, CPUS: 2 });
      expect(tags).toEqual({});
    }
  });

  it('does not fail if the cloud refuses to describe the machine type of a foreign instance', async () => {
    const { cloud, provider, time } = await openWith();
    await addForeignInstances(cloud, 1);
    const fault = { kind: 'status', status: 403, reason: 'forbidden' } as const;
    cloud.faults.add({ on: 'machineTypes.get', times: 1, fault });
    const list = async (): Promise<unknown> =>
      (await provider.end(provider.provider.listNodes(provider.call()))).map(({ resources }) => resources);
    expect(await list()).toEqual([{ instances: 1 }]);
    expect(await list()).toEqual([{ instances: 1 }]);
    expect(cloud.calls.count('machineTypes.get')).toBe(1);
    await time.until(() => false, 60_000);
    expect(await list()).toEqual([{ instances: 1, cores: 2, ram: 1024, CPUS: 2 }]);
  });
});

describe('the size of a foreign instance', () => {
  it('is read again some time after the cloud did not know its machine type', async () => {
    const { cloud, provider, time } = await openWith();
    await addForeignInstances(cloud, 1);
    cloud.faults.add({ on: 'machineTypes.get', fault: { kind: 'status', status: 404, reason: 'notFound' } });
    const list = async (): Promise<unknown> => {
      const [instance] = await provider.end(provider.provider.listNodes(provider.call()));
      return instance?.resources;
    };
    expect(await list()).toEqual({ instances: 1 });
    expect(await list()).toEqual({ instances: 1 });
    expect(cloud.calls.count('machineTypes.get')).toBe(1);
    await time.until(() => false, 600_000);
    expect(await list()).toEqual({ instances: 1, cores: 2, ram: 1024, CPUS: 2 });
  });
});

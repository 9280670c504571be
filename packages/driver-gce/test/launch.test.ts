/** Creation requests for instances, and launches and deletions that encounter faults. */

import { describe, expect, it } from '@jest/globals';
import type { SimulatedGce } from '@nodepool/simulated-gce';
import type { ExternalId } from '@nodepool/core';
import { failureOf } from '@nodepool/driver-kit';
import { addInstance, openCloud, OTHER_ZONE, pathsOf, repeat, section, twoZones, ZONE } from './cloud.js';
import { endAfterTest, openWith, TestProvider } from './provider.js';

function bodyOf({ inspect }: SimulatedGce): Readonly<Record<string, unknown>> {
  const [instance] = inspect.instances();
  return instance?.body ?? {};
}

function nameIn(externalId: ExternalId): string {
  return typeof externalId === 'string' ? (externalId.split('/').at(-1) ?? '') : '';
}

const exhausted = { kind: 'operation-error', code: 'ZONE_RESOURCE_POOL_EXHAUSTED', message: 'no room' } as const;

describe('an instance', () => {
  it('has all properties of the label', async () => {
    const used = section(
      {
        name: 'Acme North_1',
        'cloud-images': [{ name: 'debian', 'image-id': 'base-1', username: 'zuul', key: 'ssh-ed25519 AAAA me' }],
      },
      { preemptible: true, labels: { team: 'ci' }, 'volume-type': 'pd-ssd', 'volume-size': 20 },
      { network: 'ci', subnetwork: 'ci-a', 'service-account': 'nodes@acme.example' },
    );
    const { cloud, provider } = await openWith(used);
    const { machine } = await provider.launch();
    expect(machine).toEqual({ type: 'e2-micro', market: 'spot' });
    const name = /^np0000000001-[0-9a-f]{8}$/;
    const labels = {
      team: 'ci',
      nodepool_node_id: '0000000001',
      nodepool_provider_name: '_41cme_20_4eorth_5f1',
      nodepool_pool_name: 'main',
      nodepool_launch_attempt: 'attempt-of-0000000001',
    };
    const initializeParams = {
      sourceImage: 'projects/acme/global/images/base-1',
      diskType: `zones/${ZONE}/diskTypes/pd-ssd`,
      diskSizeGb: '20',
      labels,
    };
    expect(bodyOf(cloud)).toMatchObject({
      name: expect.stringMatching(name),
      machineType: `zones/${ZONE}/machineTypes/e2-micro`,
      labels,
      disks: [{ boot: true, autoDelete: true, initializeParams }],
      networkInterfaces: [
        { network: 'global/networks/ci', subnetwork: 'regions/us-central1/subnetworks/ci-a', accessConfigs: [{}] },
      ],
      serviceAccounts: [{ email: 'nodes@acme.example' }],
      scheduling: { preemptible: true, automaticRestart: false },
    });
    const { metadata } = bodyOf(cloud) as { metadata: { items: { key: string; value: string }[] } };
    expect(metadata.items).toContainEqual({ key: 'ssh-keys', value: 'zuul:ssh-ed25519 AAAA me' });
    expect(metadata.items).toContainEqual({ key: 'nodepool_provider_name', value: 'Acme North_1' });
  });

  it('has its original tags, including characters that labels cannot contain', async () => {
    const { provider } = await openWith(section({ name: 'Acme North_1' }));
    await provider.launch();
    const [instance] = await provider.end(provider.provider.listNodes(provider.call()));
    expect(instance?.tags['nodepool_provider_name']).toBe('Acme North_1');
  });

  it('of the Python Nodepool is identified by the tags in its metadata', async () => {
    const { cloud, provider } = await openWith();
    const items = [
      { key: 'nodepool_node_id', value: '0000000007' },
      { key: 'nodepool_provider_name', value: 'test' },
      { key: 'nodepool_pool_name', value: 'main' },
      { key: 'ssh-keys', value: 'zuul:ssh-rsa AAAA' },
    ];
    await addInstance(cloud, { name: 'np0000000007', metadata: { items } });
    const [instance] = await provider.end(provider.provider.listNodes(provider.call()));
    expect(instance?.externalId).toBe('np0000000007');
    expect(instance?.tags).toEqual({
      nodepool_node_id: '0000000007',
      nodepool_provider_name: 'test',
      nodepool_pool_name: 'main',
    });
  });

  it('is ready when it has its external address', async () => {
    const { cloud, provider } = await openWith(undefined, { addressMs: 20_000 });
    const instance = await provider.launch();
    expect(instance.publicIpv4).toMatch(/^127\.1\./);
    expect(instance.interfaceIp).toBe(instance.publicIpv4);
    expect(instance.cloud).toBe('Google');
    expect(cloud.inspect.instances()).toHaveLength(1);
  });

  it.each([
    [
      'a spot instance',
      { 'provisioning-model': 'spot' },
      { provisioningModel: 'SPOT', instanceTerminationAction: 'STOP' },
    ],
    ['a preemptible instance', { preemptible: true }, { preemptible: true }],
    ['an instance with accelerators', { accelerators: [{ type: 'nvidia-tesla-t4', count: 2 }] }, {}],
  ])('is never migrated, and counts against its own quotas: %s', async (_what, label, scheduling) => {
    const { cloud, provider } = await openWith(section({}, label));
    cloud.setLimits({ PREEMPTIBLE_CPUS: 8, NVIDIA_T4_GPUS: 4 });
    await provider.end(provider.provider.getQuotaLimits?.(provider.call()) ?? Promise.reject(new Error('no limits')));
    const { resources } = await provider.launch();
    expect(bodyOf(cloud)).toMatchObject({ scheduling: { ...scheduling, onHostMaintenance: 'TERMINATE' } });
    const own = 'accelerators' in label ? { CPUS: 2, NVIDIA_T4_GPUS: 2 } : { PREEMPTIBLE_CPUS: 2 };
    expect(resources).toEqual({ instances: 1, cores: 2, ram: 1024, ...own });
  });

  it('is never migrated if its machine type has accelerators', async () => {
    const { cloud, provider } = await openWith(section({}, { 'instance-type': 'g4-standard-48' }));
    await provider.launch();
    expect(bodyOf(cloud)).toMatchObject({ scheduling: { onHostMaintenance: 'TERMINATE' } });
  });

  it('is reached at its internal address with use-internal-ip, and has an external one for the internet', async () => {
    const { provider } = await openWith(section({}, {}, { 'use-internal-ip': true }));
    const instance = await provider.launch();
    expect(instance.publicIpv4).toMatch(/^127\.1\./);
    expect(instance.interfaceIp).toBe(instance.privateIpv4);
  });

  it('has no external address with public-ipv4: false, and is reached at its internal one', async () => {
    const { provider } = await openWith(section({}, {}, { 'public-ipv4': false }));
    const instance = await provider.launch();
    expect(instance.publicIpv4).toBeUndefined();
    expect(instance.interfaceIp).toBe(instance.privateIpv4);
  });

  it('needs two calls and shared lists, and its machine type is read once', async () => {
    const { cloud, provider } = await openWith(undefined, { bootMs: 10_000 });
    const ids = Array.from({ length: 10 }, (_, index) => String(index + 1).padStart(10, '0'));
    await provider.end(Promise.all(ids.map((id) => provider.begin(id))));
    const { 'instances.list': lists = 0, ...calls } = cloud.calls.byOperation();
    expect(calls).toEqual({
      'regions.get': 1,
      'instances.insert': 10,
      'zoneOperations.wait': 10,
      'machineTypes.get': 1,
    });
    // The region has three zones that no pool uses; these are listed only once a minute.
    expect(lists).toBeLessThanOrEqual(6 + 3);
  });
});

describe('a launch', () => {
  it('uses the zone of the pool that the launcher has chosen', async () => {
    const { provider } = await openWith(twoZones);
    const zones = provider.provider.getAvailabilityZones?.('main', provider.call()) ?? Promise.resolve([]);
    expect(await provider.end(zones)).toEqual(['us-central1-a', 'us-central1-b']);
    expect((await provider.launch('0000000001', { availabilityZone: 'us-central1-b' })).az).toBe('us-central1-b');
  });

  it('fails with capacity if its zone has none, and tries no other zone', async () => {
    const { cloud, provider } = await openWith(twoZones);
    cloud.faults.add({ on: 'instances.insert', fault: exhausted });
    const failed = provider.launch('0000000001', { availabilityZone: 'us-central1-a' });
    expect(await failureOf(failed)).toMatchObject({ code: 'capacity', outcome: 'not-applied' });
    expect(cloud.inspect.instances()).toEqual([]);
    expect((await provider.launch('0000000001', { availabilityZone: 'us-central1-b' })).az).toBe('us-central1-b');
  });

  it("fails with quota if the region's quota is exhausted, and the limits show the quota", async () => {
    const { cloud, provider } = await openWith();
    cloud.setLimits({ CPUS: 2 });
    await provider.launch();
    const error = await failureOf(provider.launch('0000000002'));
    expect(error).toMatchObject({ code: 'quota', outcome: 'not-applied' });
    expect(error.message).toContain("Quota 'CPUS' exceeded");
    const limits = provider.provider.getQuotaLimits?.(provider.call());
    expect((await provider.end(limits ?? Promise.reject(new Error('no limits')))).get('CPUS')).toBe(2);
  });

  it('fails with configuration if the image does not exist, and names it', async () => {
    const { provider } = await openWith(section({ 'cloud-images': [{ name: 'debian', 'image-id': 'nothing' }] }));
    const error = await failureOf(provider.launch());
    expect(error.code).toBe('configuration');
    expect(error.message).toMatch(/label small: .*projects\/acme\/global\/images\/nothing/);
  });

  it('continues to poll an operation after its state could not be read', async () => {
    const { cloud, provider } = await openWith();
    cloud.faults.add({ on: 'zoneOperations.wait', times: 2, fault: { kind: 'status', status: 503 } });
    await provider.launch();
    expect(cloud.inspect.instances()).toHaveLength(1);
  });

  it('fails with the wait that the cloud demands if it is throttled', async () => {
    const { cloud, provider } = await openWith();
    const fault = { kind: 'status', status: 429, reason: 'rateLimitExceeded', retryAfter: 7 } as const;
    cloud.faults.add({ on: 'instances.insert', fault });
    expect(await failureOf(provider.launch())).toMatchObject({ code: 'throttled', retryAfterMs: 7000 });
  });

  it('creates one instance if its insertion arrives twice, also after the deletion', async () => {
    const { cloud, provider } = await openWith();
    const paths = pathsOf(cloud, 'instances.insert');
    const { externalId } = await provider.launch();
    const [{ body } = { body: {} }] = cloud.inspect.instances();
    expect(await repeat(cloud, paths[0], body)).toMatchObject({ status: 200, answer: { operationType: 'insert' } });
    expect(cloud.inspect.instances()).toHaveLength(1);
    await provider.cleanUp(externalId);
    expect(await repeat(cloud, paths[0], body)).toMatchObject({ status: 200, answer: { operationType: 'insert' } });
    expect(cloud.inspect.instances()).toHaveLength(0);
  });

  it('fails with the reason if its instance is preempted during the boot', async () => {
    const { cloud, provider, time } = await openWith(undefined, { bootMs: 60_000 });
    const launch = provider.begin();
    expect(await time.until(() => cloud.inspect.instances().length > 0, 30_000)).toBe(true);
    const [{ zone, name } = { zone: '', name: '' }] = cloud.inspect.instances();
    cloud.stopInstance(zone, name, 'Instance was preempted.');
    const error = await failureOf(provider.end(launch));
    expect(error.code).toBe('instance-failed');
    expect(error.message).toContain('TERMINATED: Instance was preempted.');
  });
});

describe('an instance of a provider', () => {
  it('is reported in a clean-up round after it was stopped, and deleted if it is leaked', async () => {
    const { cloud, provider } = await openWith();
    const { externalId } = await provider.launch();
    cloud.stopInstance(ZONE, nameIn(externalId), 'Instance was preempted.');
    const offered = await provider.cleanUpRound(() => true);
    expect(offered).toMatchObject([{ kind: 'instance', externalId, tags: { nodepool_node_id: '0000000001' } }]);
    await provider.cleanUpRound();
    expect(cloud.inspect.instances()).toEqual([]);
  });

  it('is listed as failed, with the reason, after it was preempted', async () => {
    const { cloud, provider } = await openWith(section({}, { 'provisioning-model': 'spot' }));
    const { externalId } = await provider.launch();
    cloud.stopInstance(ZONE, nameIn(externalId), 'Instance was preempted.');
    const [listed] = await provider.end(provider.provider.listNodes(provider.call()));
    expect(listed).toMatchObject({
      externalId,
      ready: false,
      failed: 'it is TERMINATED (preemptible): Instance was preempted.',
    });
  });

  it('is reported in a clean-up round although the bucket cannot be listed', async () => {
    const { cloud, provider } = await openWith();
    const { externalId } = await provider.launch();
    const fault = { kind: 'status', status: 403, reason: 'forbidden' } as const;
    cloud.faults.add({ on: 'objects.list', times: Infinity, fault });
    expect(await provider.cleanUpRound(() => true)).toMatchObject([{ kind: 'instance', externalId }]);
    expect(cloud.inspect.instances()).toEqual([]);
  });

  it('is deleted in its zone after the zone of the provider was changed', async () => {
    const open = await openWith();
    const { externalId } = await open.provider.launch();
    const changed = await TestProvider.started(open, section({ zone: OTHER_ZONE }));
    endAfterTest(() => changed.stop());
    await changed.cleanUp(externalId);
    expect(open.cloud.inspect.instances()).toEqual([]);
  });

  it('does not cover an instance of the same name in another zone', async () => {
    const open = await openWith();
    const { externalId } = await open.provider.launch();
    const labels = { nodepool_provider_name: 'test', nodepool_node_id: '0000000001' };
    await open.provider.cleanUp(externalId);
    await addInstance(open.cloud, { name: nameIn(externalId), labels });
    const changed = await TestProvider.started(open, section({ zone: OTHER_ZONE }));
    endAfterTest(() => changed.stop());
    await changed.cleanUp(externalId);
    expect(open.cloud.inspect.instances()).toHaveLength(1);
  });

  it('does not exist after its deletion, although Google Cloud does not know the operation', async () => {
    const { cloud, provider } = await openWith();
    const { externalId } = await provider.launch();
    cloud.configure({ deleteMs: 120_000 });
    const fault = { kind: 'status', status: 404, reason: 'notFound' } as const;
    cloud.faults.add({ on: 'zoneOperations.wait', times: Infinity, fault });
    await provider.cleanUp(externalId);
    expect(cloud.inspect.instances()).toEqual([]);
  });

  it.each([{}, { json: { ok: true } }, { json: { status: 'DONE', name: 'operation-1' } }])(
    'is not deleted because a proxy answers with status 200: %j',
    async (answer) => {
      const { cloud, provider } = await openWith();
      const { externalId } = await provider.launch();
      const fault = { kind: 'proxy', status: 200, ...answer } as const;
      cloud.faults.add({ on: 'instances.delete', times: 3, fault });
      cloud.faults.add({ on: 'zoneOperations.wait', times: 3, fault });
      await provider.cleanUp(externalId);
      expect(cloud.inspect.instances()).toEqual([]);
    },
  );

  it('does not exist after its deletion, even a slow one', async () => {
    const { cloud, provider } = await openWith(undefined, { deleteMs: 300_000 });
    const { externalId } = await provider.launch();
    await provider.cleanUp(externalId);
    expect(cloud.inspect.instances()).toEqual([]);
  });

  it.each([ZONE, OTHER_ZONE])(
    'is deleted in zone %s; its id is a name without zone in the zone of the provider, as in the Python Nodepool',
    async (zone) => {
      const { cloud, provider } = await openWith(section({}, {}, { zones: [zone] }));
      const { externalId } = await provider.launch('0000000001', { availabilityZone: zone });
      const [instance] = cloud.inspect.instances();
      expect(externalId).toBe(zone === ZONE ? instance?.name : `${zone}/${instance?.name ?? ''}`);
      await provider.cleanUp(externalId);
      expect(cloud.inspect.instances()).toEqual([]);
    },
  );

  it('is also deleted by an id with the zone of the provider', async () => {
    const { cloud, provider } = await openWith();
    const { externalId } = await provider.launch();
    await provider.cleanUp(`${ZONE}/${nameIn(externalId)}`);
    expect(cloud.inspect.instances()).toEqual([]);
  });
});

it('calls that wait for the rate limit for longer than two minutes are made', async () => {
  const { provider } = await openWith(section({ rate: 2 }));
  const ids = Array.from({ length: 300 }, (_, index) => String(index).padStart(10, '0'));
  await provider.end(Promise.all(ids.map((id) => provider.begin(id))));
});

describe('the console', () => {
  it('is the end of the first serial port', async () => {
    const { provider } = await openWith();
    const { externalId } = await provider.launch();
    const label = { pool: 'main', label: 'small' };
    const log = provider.provider.getConsoleLog?.(externalId, label, provider.call());
    expect(await provider.end(log ?? Promise.resolve(''))).toMatch(/login: \n$/);
  });
});

describe('a provider', () => {
  it('fails to start with a reason if its region does not exist', async () => {
    const open = await openCloud();
    endAfterTest(() => open.cloud.close());
    const provider = new TestProvider(open, section({ region: 'mars-east1', zone: 'mars-east1-a' }));
    const error = await failureOf(provider.start());
    expect(error).toMatchObject({ code: 'configuration' });
    expect(error.message).toContain('project acme has no region mars-east1');
    await provider.stop();
  });
});

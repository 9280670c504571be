/** Creation requests for servers, and launches with and without faults of the cloud. */

import { afterEach, describe, expect, it } from '@jest/globals';
import { ApiClient, type CloudSettings } from '@nodepool/simulated-openstack';
import { sleep, type JsonObject } from '@nodepool/core';
import { callOn } from '@nodepool/driver-kit';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { addForeignServers, clientOf, openCloud, section, type OpenCloud } from './cloud.js';
import { closeAndCheck, TestProvider } from './provider.js';

let open: OpenCloud;
let test: TestProvider;

async function provider(
  change: JsonObject = {},
  label: JsonObject = {},
  pool: JsonObject = {},
  settings: Partial<CloudSettings> = {},
): Promise<TestProvider> {
  open = await openCloud(settings);
  test = await TestProvider.started(open, section(change, label, pool));
  return test;
}

afterEach(() => closeAndCheck(open, test));

describe('a server', () => {
  it('has groups, tags, and the properties of its label and request, truncated to the limit of the cloud', async () => {
    await provider(
      {},
      {
        'instance-properties': { static: 'yes', count: 3 },
        'dynamic-instance-properties': {
          who: '{request.requestor} of {request.tenant_name} for {request.requestor_data[job]}',
          long: `${'ä'.repeat(200)}{request.id}`,
        },
      },
    );
    await test.launch('0000000001');
    const [server] = open.cloud.inspect.servers();
    expect(server?.metadata).toEqual({
      groups: 'test,test-image,small',
      static: 'yes',
      count: '3',
      who: 'zuul of acme for unit',
      long: 'ä'.repeat(127),
      ...test.tagsOf('0000000001'),
    });
  });

  it('that an operator has stopped is listed as not ready, and not as failed', async () => {
    await provider();
    const { externalId } = await test.launch('0000000001');
    const [server] = open.cloud.inspect.servers();
    const api = await ApiClient.logIn(open.cloud.cloudsYaml, 'real');
    await api.post('compute', `/servers/${server?.id ?? ''}/action`, { 'os-stop': null });
    const listed = await test.end(test.provider.listNodes(test.call()));
    expect(listed).toMatchObject([{ externalId, ready: false, deleted: false, failed: undefined }]);
  });

  it('is on the default_interface of clouds.yaml if the label has no networks', async () => {
    await provider({}, {}, { networks: [] });
    const api = await ApiClient.logIn(open.cloud.cloudsYaml, 'real');
    await api.post('network', '/networks', { network: { name: 'second' } });
    expect(await test.failedLaunch('0000000001')).toMatchObject({
      message: expect.stringContaining('Multiple possible'),
    });
    await test.stop();

    const clouds = readFileSync(open.cloud.cloudsYaml, 'utf8');
    const networks = '[{"name": "private", "default_interface": true}]';
    writeFileSync(open.cloud.cloudsYaml, clouds.replace('"real": {', `"real": {"networks": ${networks},`));
    test = await TestProvider.started(open, section({}, {}, { networks: [] }));
    await test.launch('0000000002');
    expect(open.cloud.inspect.servers()).toHaveLength(1);
  });

  it('has the configured key, user data, config drive, security groups and zone', async () => {
    await provider(
      { 'cloud-images': [{ name: 'test-image', 'config-drive': true }] },
      { userdata: '#cloud-config\n' },
      { 'security-groups': ['default'] },
    );
    await test.launch('0000000001', { availabilityZone: 'nova' });
    const [server] = open.cloud.inspect.servers();
    expect(server).toMatchObject({
      name: 'np0000000001',
      configDrive: true,
      securityGroups: ['default'],
      availabilityZone: 'nova',
    });
    expect(Buffer.from(server?.userData ?? '', 'base64').toString()).toBe('#cloud-config\n');
  });

  it.each([
    ['exactly the given name', { 'flavor-name': 'm1.small' }, 2048],
    ['the least sufficient memory', { 'flavor-name': undefined, 'min-ram': 1000 }, 2048],
    ['the least sufficient memory and the given text in its name', { 'flavor-name': 'm1.l', 'min-ram': 1000 }, 8192],
  ])('is of the flavor with %s', async (_case, label, ram) => {
    const given: JsonObject = Object.fromEntries(
      Object.entries(label).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])),
    );
    await provider({
      pools: [
        {
          name: 'main',
          networks: ['private'],
          'auto-floating-ip': false,
          labels: [{ name: 'small', 'cloud-image': 'test-image', ...given }],
        },
      ],
    });
    expect(await test.launch()).toMatchObject({ resources: { ram } });
  });

  it('of another provider counts with the sizes of its volumes', async () => {
    const label = { 'boot-from-volume': true, 'volume-size': 7 };
    await provider({}, label);
    await test.launch();
    const other = await TestProvider.started(open, section({ name: 'other' }, label));
    const listed = await other.end(other.provider.listNodes(other.call()));
    expect(listed[0]?.resources).toEqual({ instances: 1, cores: 1, ram: 512, volumes: 1, 'volume-gb': 7 });
    await other.stop();
  });

  it('is listed although its volumes cannot be listed', async () => {
    await provider({}, { 'boot-from-volume': true, 'volume-size': 7 });
    const fault = { kind: 'status', status: 500 } as const;
    open.cloud.faults.add({ on: 'volume.volumes.list-detail', times: Infinity, fault });
    await test.launch();
    expect(await test.end(test.provider.listNodes(test.call()))).toMatchObject([{ resources: { volumes: 1 } }]);
  });

  it('has a tagged volume although a proxy answers the first attempt to tag it with a page of its own', async () => {
    await provider({}, { 'boot-from-volume': true, 'volume-size': 7 });
    open.cloud.faults.add({ on: 'volume.volumes.set-metadata', fault: { kind: 'proxy', status: 200 } });
    await test.launch('0000000001');
    expect(open.cloud.inspect.volumes()).toMatchObject([{ metadata: test.tagsOf('0000000001') }]);
  });

  it('that boots from a volume has a tagged volume of the given size, which is deleted with it', async () => {
    await provider({}, { 'boot-from-volume': true, 'volume-size': 7 });
    const { externalId, resources, machine } = await test.launch();
    expect(machine).toEqual({ type: 'm1.tiny' });
    expect(resources).toEqual({ instances: 1, cores: 1, ram: 512, volumes: 1, 'volume-gb': 7 });
    const [volume] = open.cloud.inspect.volumes();
    expect(volume).toMatchObject({ sizeGb: 7, serverId: externalId, metadata: test.tagsOf('0000000001') });
    await test.cleanUp(externalId);
    expect(open.cloud.inspect.leftovers()).toMatchObject({ servers: 0, volumes: 0, ports: 0 });
  });

  it('has its resources and region although the cloud lists only the id of its flavor', async () => {
    await provider({}, {}, {}, { microversion: '2.40' });
    expect(await test.launch()).toMatchObject({ resources: { instances: 1, cores: 1, ram: 512 }, region: 'RegionOne' });
  });

  it('has its resources although a proxy hides the versions of the service', async () => {
    open = await openCloud();
    const hidden = open.cloud.faults.add({
      on: 'compute.version',
      times: Infinity,
      fault: { kind: 'proxy', status: 404 },
    });
    test = await TestProvider.started(open, section());
    expect(await test.launch()).toMatchObject({ resources: { instances: 1, cores: 1, ram: 512 } });
    expect(hidden.hits).toBeGreaterThan(0);
  });
});

describe('a launch', () => {
  it.each([
    ['invalid', (): void => writeFileSync(open.cloud.cloudsYaml, 'clouds: {')],
    ['empty', (): void => writeFileSync(open.cloud.cloudsYaml, '')],
    ['missing', (): void => rmSync(open.cloud.cloudsYaml)],
  ])('uses the former credentials while clouds.yaml is %s', async (_case, damage) => {
    await provider({}, {}, {}, { tokenTtlMs: 60_000 });
    damage();
    await test.end(sleep(open.time.clock, 120_000));
    await test.launch();
    expect(test.count('auth.tokens', 'POST')).toBeGreaterThan(1);
  });
});

describe('a floating IP', () => {
  const withFloatingIp = { 'auto-floating-ip': true };

  it('is created with tags for a server without a public address, and is deleted before the server', async () => {
    await provider({}, {}, withFloatingIp);
    const instance = await test.launch();
    const [floating] = open.cloud.inspect.floatingIps();
    expect(floating?.description).toContain('nodepool_node_id=0000000001');
    expect(floating?.description).toContain('nodepool_launch_attempt=attempt-of-0000000001');
    expect(instance).toMatchObject({ publicIpv4: floating?.address, interfaceIp: floating?.address });
    expect(instance.privateIpv4).toMatch(/^10\./);
    await test.cleanUp(instance.externalId);
    expect(open.cloud.inspect.leftovers()).toMatchObject({ servers: 0, floatingIps: 0, ports: 0 });
    const deletions = test.apiCalls.filter(({ method }) => method === 'DELETE').map(({ operation }) => operation);
    expect(deletions).toEqual(['floatingip', 'server']);
  });

  it.each([
    ['has no IPv4 address', '2001:db8::/64', 6],
    ['is not connected to the outside', '10.99.0.0/24', 4],
  ])('is attached to the other port if a port %s', async (_case, cidr, version) => {
    await provider({}, {}, { ...withFloatingIp, networks: ['other', 'private'] });
    const api = await ApiClient.logIn(open.cloud.cloudsYaml, 'real');
    const created = await api.post('network', '/networks', { network: { name: 'other' } });
    const subnet = { network_id: created.member('network')['id'], cidr, ip_version: version };
    await api.post('network', '/subnets', { subnet });
    // The network service lists ports in the order of their random ids.
    for (const id of ['0000000001', '0000000002', '0000000003', '0000000004', '0000000005']) await test.launch(id);
    expect(open.cloud.inspect.floatingIps()).toHaveLength(5);
  });

  it('is not created with use-internal-ip', async () => {
    await provider({}, {}, { ...withFloatingIp, 'use-internal-ip': true });
    const instance = await test.launch();
    expect(instance.interfaceIp).toBe(instance.privateIpv4);
    expect(open.cloud.inspect.floatingIps()).toEqual([]);
  });

  it('is created once although the answer to its creation is lost', async () => {
    await provider({}, {}, withFloatingIp);
    open.cloud.faults.add({ on: 'network.floating-ips.create', fault: { kind: 'cut', when: 'after' } });
    const instance = await test.launch();
    expect(open.cloud.inspect.floatingIps()).toHaveLength(1);
    expect(instance.publicIpv4).toBe(open.cloud.inspect.floatingIps()[0]?.address);
  });

  it('is created once although another process resumes the launch', async () => {
    await provider({}, {}, withFloatingIp);
    const { externalId } = await test.launch();
    await test.launch('0000000001', { externalId, saved: { state: 'attaching' } });
    expect(open.cloud.inspect.floatingIps()).toHaveLength(1);
  });

  it('fails the launch with quota if the quota is exhausted', async () => {
    await provider({}, {}, withFloatingIp);
    open.cloud.quota('demo').set({ floatingip: 0 });
    expect(await test.failedLaunch()).toMatchObject({ code: 'quota' });
  });

  it('is created after an outage of the network service', async () => {
    await provider({}, {}, withFloatingIp);
    open.cloud.faults.add({ on: 'network', times: 6, fault: { kind: 'status', status: 503 } });
    expect((await test.launch()).publicIpv4).toBeDefined();
  });

  it('requires at most six calls per node for sixty concurrent nodes, polling included', async () => {
    await provider({}, {}, withFloatingIp, { bootMs: 20_000, deleteMs: 2000 });
    test.apiCalls.length = 0;
    const ids = Array.from({ length: 60 }, (_, index) => String(index).padStart(10, '0'));
    const instances = await test.end(Promise.all(ids.map((id) => test.begin(id))));
    await test.end(Promise.all(instances.map(({ externalId }, index) => test.beginCleanUp(externalId, ids[index]))));
    expect(open.cloud.inspect.leftovers()).toMatchObject({ servers: 0, floatingIps: 0, ports: 0 });
    expect(test.apiCalls.length / ids.length).toBeLessThan(6);
  });
});

describe('a server that enters ERROR', () => {
  it.each([
    ['No valid host was found. ', 'capacity'],
    ['Exceeded maximum number of retries. Exceeded max scheduling attempts 3 for instance {id}.', 'capacity'],
    ['Build of instance {id} aborted: No more IP addresses available on network 1234.', 'capacity'],
    [
      'Build of instance {id} aborted: Failed to allocate the network(s) with error No fixed IP addresses available for network: 1234, not rescheduling.',
      'capacity',
    ],
    ["Quota exceeded for resources: ['port'].", 'quota'],
    ['Build of instance {id} aborted: VolumeSizeExceedsAvailableQuota', 'quota'],
    ['Maximum number of ports exceeded', 'quota'],
    ['Build of instance {id} aborted: the hypervisor gave up', 'instance-failed'],
  ])('with "%s" fails the launch with %s, and must be deleted', async (message, code) => {
    await provider();
    open.cloud.faults.nextServers({ behaviour: { boot: 'error', message } });
    expect(await test.failedLaunch()).toMatchObject({ code, outcome: 'applied' });
  });
});

describe('a server in ERROR whose fault is not listed', () => {
  it.each([
    ['fails the launch by the fault in its own record', 'No valid host was found. ', 'capacity'],
    ['fails the launch if its own record has no fault', '', 'instance-failed'],
  ])('%s', async (_case, message, code) => {
    await provider({}, {}, {}, { bootMs: 600_000 });
    const launch = test.failedLaunch();
    await open.time.until(() => open.cloud.inspect.servers().length > 0, 60_000);
    const id = open.cloud.inspect.servers()[0]?.id ?? '';
    const body = JSON.stringify({ servers: [{ id, status: 'ERROR', metadata: test.tagsOf('0000000001') }] });
    const withoutFault = { kind: 'status', status: 200, body } as const;
    open.cloud.faults.add({ on: 'compute.servers.list-detail', times: Infinity, fault: withoutFault });
    open.cloud.faults.breakServer(id, message);
    expect(await launch).toMatchObject({ code, outcome: 'applied' });
  });
});

describe('a creation', () => {
  it('creates nothing if it exceeds the quota', async () => {
    await provider();
    open.cloud.quota('demo').set({ instances: 0 });
    expect(await test.failedLaunch()).toMatchObject({ code: 'quota', outcome: 'not-applied' });
  });

  it.each([
    ['key pair', { 'key-name': 'nobodys' }],
    ['network', { networks: ['elsewhere'] }],
    ['metadata key', { 'instance-properties': { 'zuul/project': 'x' } }],
    [
      'number of metadata',
      { 'instance-properties': Object.fromEntries(Array.from({ length: 128 }, (_, n) => [`k${n}`, ''])) },
    ],
  ])('with an unusable %s is a configuration error', async (_case, label) => {
    await provider({}, label);
    expect(await test.failedLaunch()).toMatchObject({ code: 'configuration' });
  });

  it.each([
    ['memory', { min_ram: 4096 }],
    ['disk', { min_disk: 5 }],
  ])('from an image that needs more %s than the flavor has is a configuration error', async (_case, needs) => {
    open = await openCloud();
    const client = clientOf(open);
    const call = callOn(open.time.clock);
    const image = { name: 'demanding', disk_format: 'raw', container_format: 'bare', ...needs };
    const { id } = await client.image.createImage(image, call);
    await client.image.putData(id, 1, () => Readable.from(['x'], { objectMode: false }), 60_000, call);
    await client.close();
    test = await TestProvider.started(open, section({ 'cloud-images': [{ name: 'test-image', 'image-id': id }] }));
    expect(await test.failedLaunch()).toMatchObject({ code: 'configuration' });
  });

  it('in a zone that does not exist, or has no working hosts at the moment, is refused', async () => {
    await provider();
    expect(await test.failedLaunch('0000000001', { availabilityZone: 'atlantis' })).toMatchObject({
      code: 'refused',
      message: expect.stringContaining('availability zone'),
    });
  });

  it('is retried with a new lookup if the cached image no longer exists', async () => {
    await provider();
    await test.launch('0000000001');
    open.cloud.faults.add({
      on: 'compute.servers.create',
      fault: { kind: 'status', status: 400, body: '{"badRequest": {"message": "Can not find requested image"}}' },
    });
    const looked = test.count('images');
    await test.launch('0000000002');
    expect(test.count('images')).toBe(looked + 1);
    expect(test.count('servers', 'POST')).toBe(3);
  });

  it('from a deleted upload fails with not-found, so the label stays in service', async () => {
    await provider({
      diskimages: [{ name: 'built' }],
      pools: [{ name: 'main', networks: ['private'], labels: [{ name: 'small', diskimage: 'built', 'min-ram': 1 }] }],
    });
    const gone = '11111111-2222-3333-4444-555555555555';
    expect(await test.failedLaunch('0000000001', { imageExternalId: gone })).toMatchObject({ code: 'not-found' });
  });

  it('ends when the cloud demands a wait, and the next one waits for that time', async () => {
    await provider();
    open.cloud.faults.add({ on: 'compute', times: 1, fault: { kind: 'status', status: 429, retryAfter: 30 } });
    const before = open.time.clock.monotonic();
    expect(await test.failedLaunch()).toMatchObject({
      code: 'throttled',
      outcome: 'not-applied',
      retryAfterMs: 30_000,
    });
    await test.launch('0000000002');
    expect(open.time.clock.monotonic() - before).toBeGreaterThanOrEqual(30_000);
  });

  it.each([
    ['before its effect', 'before'],
    ['after its effect', 'after'],
  ] as const)('that hangs %s creates at most one server, and reports it', async (_case, when) => {
    await provider();
    open.cloud.faults.add({ on: 'compute.servers.create', fault: { kind: 'hang', when } });
    if (when === 'after') {
      expect((await test.launch()).externalId).toBe(open.cloud.inspect.servers()[0]?.id);
    } else {
      expect(await test.failedLaunch()).toMatchObject({ code: 'timeout', outcome: 'not-applied' });
    }
    expect(open.cloud.inspect.servers()).toHaveLength(when === 'after' ? 1 : 0);
    expect(test.count('servers', 'POST')).toBe(1);
  });

  it('finds its server among the foreign servers of all pages', async () => {
    await provider({}, {}, {}, { pageLimit: 2 });
    await addForeignServers(open, 5);
    open.cloud.faults.add({ on: 'compute.servers.create', fault: { kind: 'cut', when: 'after' } });
    expect((await test.launch()).externalId).toEqual(
      open.cloud.inspect.servers().find(({ metadata }) => 'nodepool_node_id' in metadata)?.id,
    );
  });
});

describe('a launch during an outage of the identity service', () => {
  it('ends at once, so that another provider can serve the request', async () => {
    await provider();
    open.cloud.faults.revokeTokens();
    open.cloud.faults.add({ on: 'identity', times: 5, fault: { kind: 'status', status: 503 } });
    expect(await test.failedLaunch()).toMatchObject({ code: 'transient', outcome: 'not-applied' });
    expect(open.cloud.inspect.servers()).toHaveLength(0);
  });

  it('ends at once if another service cannot verify tokens', async () => {
    await provider();
    const body =
      '{"message": "The Keystone service is temporarily unavailable.\\n\\n", "code": "503 Service Unavailable", "title": "Service Unavailable"}';
    open.cloud.faults.add({ on: 'compute', times: 4, fault: { kind: 'status', status: 503, body } });
    expect(await test.failedLaunch()).toMatchObject({ code: 'throttled', outcome: 'not-applied' });
    expect(open.cloud.inspect.servers()).toHaveLength(0);
  });
});

describe('a label', () => {
  it('is not ready while its image is missing, and is ready after the upload', async () => {
    await provider({ 'cloud-images': [{ name: 'test-image', 'image-name': 'later' }] });
    const readiness = test.provider.labelReady('main', 'small');
    expect(readiness).toEqual({ ready: false, reason: expect.stringMatching(/"later".*; it has: test-image/) });
    const file = __filename;
    await test.upload(file, { externalName: 'later' });
    await test.end(new Promise<void>((resolve) => void open.time.clock.schedule(61_000, resolve)));
    test.provider.labelReady('main', 'small');
    await test.end(new Promise<void>((resolve) => void open.time.clock.schedule(10_000, resolve)));
    expect(test.provider.labelReady('main', 'small')).toEqual({ ready: true });
  });

  it('can name a hidden image by its id', async () => {
    await provider();
    const id = await test.upload(__filename, { metadata: { os_hidden: 'true' } });
    await test.stop();
    test = await TestProvider.started(open, section({ 'cloud-images': [{ name: 'test-image', 'image-name': id }] }));
    await test.launch();
    expect(open.cloud.inspect.servers()).toMatchObject([{ imageId: id }]);
  });

  it('is not ready if its network is missing, and the reason lists the existing networks', async () => {
    await provider({}, { networks: ['nowhere'] });
    expect(test.provider.labelReady('main', 'small')).toEqual({
      ready: false,
      reason: expect.stringMatching(/no network "nowhere"; it has: .*private/),
    });
  });

  it('is not ready if its flavor is missing, and the reason lists the existing flavors', async () => {
    await provider({}, { 'flavor-name': 'giant' });
    expect(test.provider.labelReady('main', 'small')).toEqual({
      ready: false,
      reason: expect.stringMatching(/"giant".*m1\.tiny/),
    });
  });

  it.each([
    [['giant', 'm1.tiny'], { ready: true }],
    [
      ['giant', 'huge'],
      {
        ready: false,
        reason: expect.stringMatching(/no flavor with the name or id "giant" or "huge"; it has: .*m1\.tiny/),
      },
    ],
  ])('with the flavors %j is ready if one of them exists', async (names, readiness) => {
    await provider({}, {}, { labels: [{ name: 'small', 'cloud-image': 'test-image', 'flavor-names': names }] });
    expect(test.provider.labelReady('main', 'small')).toEqual(readiness);
  });

  it('with several flavors and min-ram uses the smallest flavor of the chosen name', async () => {
    const label = { name: 'small', 'cloud-image': 'test-image', 'min-ram': 600, 'flavor-names': ['large', 'm1.'] };
    await provider({}, {}, { labels: [label] });
    await test.launch(undefined, { machineType: 'm1.' });
    const [server] = open.cloud.inspect.servers();
    expect(server?.flavor).toBe('m1.small');
  });
});

/** Launches and deletions on moto, which knows nothing of this driver and its simulated AWS. */

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DescribeInstancesCommand, type Instance } from '@aws-sdk/client-ec2';
import type { ExternalId, JsonObject } from '@nodepool/core';
import { realTime, TestProvider } from '@nodepool/driver-kit';
import { awsDriver } from '../src/index.js';
import { openMoto, reasonWithoutMoto, type OpenMoto } from './moto.js';

const reason = reasonWithoutMoto();
const tagsIn = (instance: Instance | undefined): Readonly<Record<string, string | undefined>> =>
  Object.fromEntries((instance?.Tags ?? []).map(({ Key = '', Value }) => [Key, Value]));

const ids = (count: number): string[] => Array.from({ length: count }, (_, index) => `${index + 1}`.padStart(10, '0'));

(reason === undefined ? describe : describe.skip)(reason === undefined ? 'on moto' : `skipped: ${reason}`, () => {
  let moto: OpenMoto;

  beforeAll(async () => {
    moto = await openMoto();
  });

  afterAll(() => moto.close());

  /** Returns the instances that run or are about to. */
  async function existing(): Promise<readonly Instance[]> {
    const { Reservations = [] } = await moto.client.send(new DescribeInstancesCommand({}));
    return Reservations.flatMap(({ Instances = [] }) => Instances).filter(({ State }) => State?.Name !== 'terminated');
  }

  async function withProvider(
    work: (test: TestProvider) => Promise<void>,
    ...change: [change?: JsonObject, label?: JsonObject, pool?: JsonObject]
  ): Promise<void> {
    const test = new TestProvider({ time: realTime(), driver: awsDriver(moto.env), section: moto.section(...change) });
    await test.start();
    try {
      await work(test);
    } finally {
      await test.stop();
    }
    expect(await existing()).toEqual([]);
  }

  it('launches an instance with its tags and settings, and deletes it', async () => {
    const [zone = '', subnet = ''] = Object.entries(moto.subnets)[1] ?? [];
    const label = { userdata: '#!/bin/sh', 'volume-size': 41, tags: { team: 'ci' } };
    const work = async (test: TestProvider): Promise<void> => {
      const { externalId, hostname, interfaceIp, az } = await test.launch();
      expect([hostname, az]).toEqual(['np0000000001', zone]);
      const [instance] = await existing();
      expect(instance).toMatchObject({ InstanceId: externalId, SubnetId: subnet, PublicIpAddress: interfaceIp });
      expect(tagsIn(instance)).toMatchObject({ ...test.tagsOf('0000000001'), Name: 'np0000000001', team: 'ci' });
      await test.cleanUp(externalId);
    };
    await withProvider(work, {}, label, { 'subnet-id': subnet });
  });

  it('serves the first node if moto launches fewer instances than requested, and refuses the others', async () => {
    await withProvider(async (test) => {
      const results = await test.end(Promise.allSettled(ids(3).map((id) => test.begin(id))));
      expect(test.apiCalls.filter(({ operation }) => operation === 'RunInstances')).toHaveLength(1);
      // moto launches the minimum, which is one.
      const [first, ...others] = results;
      for (const other of others) expect(other).toMatchObject({ reason: { code: 'capacity', outcome: 'not-applied' } });
      const externalId = first?.status === 'fulfilled' ? first.value.externalId : null;
      const [instance, ...more] = await existing();
      expect([instance?.InstanceId, more.length]).toEqual([externalId, 0]);
      expect(tagsIn(instance)['nodepool_nodes_0']).toContain('0000000001:attempt-of-0000000001 0000000002:');
      await test.cleanUp(externalId);
    });
  });

  it('deletes several instances with one call', async () => {
    await withProvider(async (test) => {
      const launched: (readonly [string, ExternalId])[] = [];
      for (const id of ids(3)) launched.push([id, (await test.launch(id)).externalId]);
      await test.end(Promise.all(launched.map(([id, externalId]) => test.beginCleanUp(externalId, id))));
      expect(test.apiCalls.filter(({ operation }) => operation === 'TerminateInstances')).toHaveLength(1);
    });
  });

  it('launches a spot instance', async () => {
    const work = async (test: TestProvider): Promise<void> => {
      const { externalId } = await test.launch();
      expect(await existing()).toMatchObject([{ InstanceId: externalId, InstanceLifecycle: 'spot' }]);
      await test.cleanUp(externalId);
    };
    await withProvider(work, {}, { 'use-spot': true });
  });

  it.each([
    ['on-demand', false, 'prioritized'],
    ['spot', true, 'price-capacity-optimized'],
  ])('launches a fleet: %s', async (_market, spot, strategy) => {
    const fleet = { 'instance-types': ['m5.large', 'm6i.large'], 'allocation-strategy': strategy };
    const work = async (test: TestProvider): Promise<void> => {
      const { externalId } = await test.launch();
      expect(await existing()).toMatchObject([{ InstanceId: externalId }]);
      await test.cleanUp(externalId);
    };
    await withProvider(work, {}, { fleet, 'use-spot': spot });
  });

  it('names the key of a missing key pair', async () => {
    const work = async (test: TestProvider): Promise<void> => {
      const error = await test.failedLaunch();
      expect(error).toMatchObject({ code: 'configuration', message: expect.stringContaining('"key-name"') });
    };
    await withProvider(work, {}, { 'key-name': 'missing' });
  });
});

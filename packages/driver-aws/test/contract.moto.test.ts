/** The driver contract on moto, with `pnpm test:aws`, without the rules that need faults and other controls. */

import { describe, it, jest } from '@jest/globals';
import { join } from 'node:path';
import { DescribeInstancesCommand, RunInstancesCommand } from '@aws-sdk/client-ec2';
import { describeDriverContract, realTime, type DriverFixture } from '@nodepool/driver-kit';
import { AwsAdapter, awsDriver, type AwsProvider } from '../src/index.js';
import { tagsOf } from '../src/identity.js';
import { configuration } from './contract.js';
import { MOTO_URL, openMoto } from './moto.js';

jest.setTimeout(300_000);

/** moto shows another client token than that of the call. On-demand instances with such a token are copies. */
const SPOT = { 'use-spot': true };

/** The site's configuration needs no cloud. */
const SIMULATED = 'the contract on the simulated AWS shows it';

const SINGLE = 'moto launches the minimum of a call, which is one instance';

const fixture: DriverFixture = {
  name: 'aws, on moto',
  packageFolder: join(__dirname, '..'),
  configuration,
  can: ['adapter', 'resources', 'foreign-instances', 'zones', 'machine-types'],
  exempt: {
    'life.each-its-own': SINGLE,
    'client.queue': SINGLE,
    'stop.unused': 'takes an hour of real time',
    'site.described': SIMULATED,
    'site.written': SIMULATED,
  },
  async open() {
    const moto = await openMoto();
    const label = { name: 'either', 'cloud-image': 'amazon', 'key-name': 'nodepool' };
    const subnets = Object.values(moto.subnets).slice(0, 2);
    const section = moto.section({}, SPOT, { 'subnet-ids': subnets });
    const second = { name: 'second', labels: [{ ...label, ...SPOT, 'instance-types': ['m5.xlarge', 'm5.large'] }] };
    return {
      time: realTime(),
      section: { ...section, pools: [...(section['pools'] as []), second] },
      makeDriver: () => awsDriver(moto.env),
      makeAdapter: (config) => new AwsAdapter(config as AwsProvider, moto.env),
      async addForeignInstances(count) {
        const input = { ImageId: 'ami-12c6146b', InstanceType: 't3.micro', MinCount: count, MaxCount: count } as const;
        await moto.client.send(new RunInstancesCommand(input));
      },
      async resources() {
        const { Reservations = [] } = await moto.client.send(new DescribeInstancesCommand({}));
        const instances = Reservations.flatMap(({ Instances = [] }) => Instances);
        return instances
          .filter(({ State }) => State?.Name !== 'terminated')
          .map((instance) => ({ kind: 'instance', externalId: instance.InstanceId ?? '', tags: tagsOf(instance) }))
          .filter(({ tags }) => 'nodepool_node_id' in tags);
      },
      machineTypeLabel: { pool: 'second', label: 'either' },
      close: () => moto.close(),
    };
  },
};

if (MOTO_URL !== '') describeDriverContract(fixture, { describe, it });
else it.skip('the contract on moto runs with pnpm test:aws', () => undefined);

/** A label of AWS with `use-spot: prefer` whose spot instances have no quota or cannot be launched. */

import { afterEach, expect, it } from '@jest/globals';
import { REGION, type SimulatedAws } from '@nodepool/simulated-aws';
import { openAws } from '../src/matrix/aws.js';
import { LABEL } from '../src/matrix/target.js';
import { Site } from './support/site.js';

const SPOT = 'L-34B43A08';

let site: Site;

afterEach(() => site.stop());

async function start(prepare: (cloud: SimulatedAws) => void): Promise<SimulatedAws> {
  let cloud: SimulatedAws | undefined;
  site = await Site.start(async (options) => {
    const target = await openAws(options, [`${REGION}a`]);
    cloud = target.cloud;
    prepare(cloud);
    return target;
  });
  if (cloud === undefined) throw new Error('the cloud was not started');
  return cloud;
}

it.each<[why: string, prepare: (cloud: SimulatedAws) => void]>([
  ['the account has no quota of spot instances', (cloud) => cloud.setQuota(SPOT, 0)],
  [
    'the quota is in use, and the account may not list quotas',
    (cloud) => {
      cloud.permissions.deny('servicequotas:ListServiceQuotas');
      cloud.setQuota(SPOT, 0);
    },
  ],
  ['AWS has no capacity', (cloud) => cloud.capacity.limit({ market: 'spot' }, 0)],
  [
    'the account lacks the role of spot instances',
    (cloud) => {
      const code = 'AuthFailure.ServiceLinkedRoleCreationNotPermitted';
      const message = 'The provided credentials do not have permission to create the service-linked role';
      cloud.faults.add({
        on: ({ operation, parameters }) =>
          operation === 'ec2.RunInstances' && parameters.has('InstanceMarketOptions.MarketType'),
        times: Infinity,
        fault: { kind: 'status', status: 403, code, message },
      });
    },
  ],
])('is served on demand: %s', async (_why, prepare) => {
  const cloud = await start(prepare);
  const leases = await site.run(Promise.all([site.requestor.acquire({ labels: [LABEL] })]));
  expect(cloud.inspect.instances().map(({ market }) => market)).toContain('on-demand');
  for (const lease of leases) await site.run(lease.return());
});

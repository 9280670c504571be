/** Launches and deletions of instances, with and without faults. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { openCloud, section, type OpenCloud } from './cloud.js';
import { TestProvider } from './provider.js';

let open: OpenCloud;
const started: TestProvider[] = [];

beforeEach(async () => {
  open = await openCloud();
});

afterEach(async () => {
  for (const test of started.splice(0)) await test.stop();
  await open.close();
});

type Change = Parameters<typeof section> extends [unknown, ...infer Rest] ? Rest : never;

async function provider(...change: Change): Promise<TestProvider> {
  const test = await TestProvider.started(open, section(open, ...change));
  started.push(test);
  return test;
}

describe('a launch', () => {
  it('creates an instance with one call, and its volume and interface have the tags of the node', async () => {
    const test = await provider();
    const launched = await test.launch();
    expect(launched.interfaceIp).toBe(launched.publicIpv4);
    expect(launched.resources).toEqual({ instances: 1, cores: 1, ram: 8192, 'L-1216C47A': 2 });
    const { inspect, calls } = open.cloud;
    expect(calls.count('ec2.RunInstances')).toBe(1);
    for (const { tags } of [...inspect.instances(), ...inspect.volumes(), ...inspect.networkInterfaces()]) {
      expect(tags['nodepool_node_id']).toBe('0000000001');
    }
  });
});

/** Resources of a cloud that no record names, judged by a process whose cache lacks the newest records. */

import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { Resource } from '@nodepool/core';
import { nodeDataWith, seededRandom } from '@nodepool/core/testing';
import { openStore, unrecordedResources } from '@nodepool/store';
import { Simulation } from './simulation.js';

let simulation: Simulation;
beforeEach(() => {
  simulation = new Simulation();
});
afterEach(() => simulation.close());

function instance(externalId: string, attempt: string, node = '0000000777'): Resource {
  const tags = {
    nodepool_node_id: node,
    nodepool_provider_name: 'cloud',
    nodepool_pool_name: 'main',
    nodepool_launch_attempt: attempt,
  };
  return { kind: 'instance', externalId, name: externalId, tags };
}

it('has a record if another process has just adopted it, and no record if its look-alikes have', async () => {
  const other = await simulation.store();
  await simulation.run(other.nodes.create([nodeDataWith({ provider: 'cloud', external_id: 'adopted' })]));
  await simulation.run(other.nodes.create([nodeDataWith({ provider: 'another', external_id: 'of-another-provider' })]));

  // Its cache is empty: it has not started.
  const { clock } = simulation;
  const late = openStore(simulation.client(), { clock, random: seededRandom(1), identifier: 'late' });
  const resources = [
    instance('adopted', 'a'),
    { ...instance('volume-of-adopted', 'a'), kind: 'volume' },
    instance('of-another-provider', 'b'),
    instance('orphan', 'c'),
    instance('malformed', 'd', '777'),
  ];
  const found = await simulation.run(unrecordedResources(late, 'cloud', resources, {}));

  expect(found.map(({ resource }) => resource.externalId)).toEqual(['of-another-provider', 'orphan']);
  late.close();
});

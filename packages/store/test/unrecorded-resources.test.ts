/** Resources of a cloud that no record names, judged by a process whose cache lacks the newest records. */

import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import type { Resource } from '@nodepool/core';
import { nodeDataWith, seededRandom } from '@nodepool/core/testing';
import { missingTags, openStore, unrecordedResources } from '@nodepool/store';
import { ensurePath } from '@nodepool/zookeeper';
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

it('of a cached node is its instance, and nothing else with the same node', async () => {
  const store = await simulation.store();
  const create = (externalId: string): ReturnType<typeof nodeDataWith> =>
    nodeDataWith({ provider: 'cloud', external_id: externalId, pool: 'main' });
  const ids = await simulation.run(store.nodes.create([create('i-1'), create('i-2'), create('i-3')]));
  const [one = '', two = '', three = ''] = ids;
  const resources = [
    instance('i-1', 'a', one),
    instance('i-2', 'b', two),
    instance('twin', 'c', two),
    { ...instance('volume', 'b', two), kind: 'volume' },
    // Two regions may have used the same id, which its record names.
    instance('i-3', 'd', three),
    instance('i-3', 'e', three),
  ];
  const found = await simulation.run(unrecordedResources(store, 'cloud', resources, {}));
  expect(found.map(({ resource }) => resources.indexOf(resource))).toEqual([2]);
});

it('of a node whose attempt is not named is no duplicate', async () => {
  const store = await simulation.store();
  const create = nodeDataWith({ provider: 'cloud', external_id: 'i-1', pool: 'main' });
  const [id = ''] = await simulation.run(store.nodes.create([create]));
  const volume = { ...instance('volume', 'a', id), kind: 'volume' };
  const resources = [instance('i-1', '', id), volume, { ...instance('unnamed', '', id), kind: 'volume' }];
  expect(await simulation.run(unrecordedResources(store, 'cloud', resources, {}))).toEqual([]);
  expect(missingTags(instance('i-2', ''))).toEqual(['nodepool_installation', 'nodepool_launch_attempt']);
});

it('of a cached node is judged without a read if only its instance is listed', async () => {
  const store = await simulation.store();
  const create = nodeDataWith({ provider: 'cloud', external_id: 'i-1', pool: 'main' });
  const [id = ''] = await simulation.run(store.nodes.create([create]));
  const readIds = jest.spyOn(store.nodes, 'readIds');
  const resources = [instance('i-1', 'a', id)];
  expect(await simulation.run(unrecordedResources(store, 'cloud', resources, {}))).toEqual([]);
  expect(readIds).not.toHaveBeenCalled();
});

it('of a call that created several instances has no record if none of its possible owners has one', async () => {
  const store = await simulation.store();
  const create = nodeDataWith({ provider: 'cloud', external_id: 'i-1', pool: 'main' });
  const [known = ''] = await simulation.run(store.nodes.create([create]));
  const tagsOf = (node: string, attempt: string): Resource['tags'] => instance('', attempt, node).tags;
  const volume = (externalId: string, first: Resource['tags'], ...others: readonly Resource['tags'][]): Resource => ({
    ...{ kind: 'volume', externalId, name: externalId, tags: first, otherOwners: others },
  });
  const resources = [
    volume('of-two-gone', tagsOf('0000000777', 'a'), tagsOf('0000000778', 'b')),
    volume('perhaps-of-a-node', tagsOf('0000000777', 'a'), tagsOf(known, 'c')),
    volume('perhaps-of-the-first', tagsOf(known, 'c'), tagsOf('0000000778', 'b')),
    volume('perhaps-malformed', tagsOf('0000000777', 'a'), tagsOf('778', 'b')),
  ];
  const found = await simulation.run(unrecordedResources(store, 'cloud', resources, {}));
  expect(found.map(({ resource }) => resource)).toEqual([resources[0]]);
});

it('of a build has no record if the build has no upload to the provider', async () => {
  const store = await simulation.store();
  const build = 'a'.repeat(32);
  const path = `/nodepool/images/debian/builds/${build}/providers/cloud/images/0000000001`;
  await simulation.run(ensurePath(simulation.other, path));
  const part = (externalId: string, change: Resource['tags'] = {}): Resource => {
    const tags = { nodepool_provider_name: 'cloud', nodepool_image_name: 'debian', nodepool_build_id: build };
    return { kind: 'upload', externalId, name: externalId, tags: { ...tags, ...change } };
  };
  const resources = [
    part('used'),
    part('of-another-build', { nodepool_build_id: 'b'.repeat(32) }),
    part('of-another-image', { nodepool_image_name: 'fedora' }),
    part('malformed', { nodepool_build_id: '../b' }),
  ];
  const found = await simulation.run(unrecordedResources(store, 'cloud', resources, {}));
  expect(found.map(({ resource }) => resource.externalId)).toEqual(['of-another-build', 'of-another-image']);
});

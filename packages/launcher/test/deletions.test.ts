/** Tests that deletions continue while other programs change the records. */

import { expect, it, jest } from '@jest/globals';
import { silentLogger, type LogFields, type Logger } from '@nodepool/core';
import type { CloudSettings } from '@nodepool/driver-example';
import { DecisionLog } from '@nodepool/status';
import { World, pool, provider } from './support/world.js';

const NO_FAULTS: CloudSettings['faults'] = {
  'create-errors': 0,
  'lost-answers': 0,
  'failed-instances': 0,
  'stuck-instances': 0,
  'delete-errors': 0,
  'list-errors': 0,
  'upload-errors': 0,
  'capacity-errors': 0,
  'auth-errors': 0,
};

it('the launcher deletes a node whose requestor changed the record during the deletion', async () => {
  const world = new World();
  const warnings: (readonly [string, LogFields | undefined])[] = [];
  const warn = (message: string, fields?: LogFields): void => void warnings.push([message, fields]);
  const log: Logger = { ...silentLogger, with: () => log, named: () => log, warn };
  world.log = log;
  world.cloud.configure({ deleteTimeMs: [5000, 5000] });
  await world.launcher([provider('demo', [pool('main', ['small'])])]);
  const id = await world.served(['small']);
  const taken = await world.during(world.requestor.take(id));
  const [node] = taken.ids;
  await world.during(world.requestor.die(taken));
  await world.until('it is being deleted', () => world.nodes().get(node!)?.state === 'deleting');
  await world.clock.advance(1000);
  await world.during(world.requestor.change(`/nodepool/nodes/${node!}`, { state: 'used' }));
  await world.until('the node is gone', () => world.nodes().size === 0);
  expect(world.cloud.existingInstances()).toEqual([]);
  const path = `/nodepool/nodes/${node!}`;
  const reason = `${path} is no longer owned by this process: it was changed or deleted, or its lock was lost`;
  // The log fields must not contain the error itself, which would add its stack.
  expect(warnings).toEqual([
    ['Abandoned the deletion: another program owns the node now', { code: 'lost-ownership', reason }],
  ]);
  expect(await world.end()).toEqual([]);
});

it('the launcher deletes a returned node with two transactions', async () => {
  const world = new World(1, () => 1);
  const { zk } = await world.launcher([provider('demo', [pool('main', ['small'])])]);
  const id = await world.served(['small']);
  const taken = await world.during(world.requestor.take(id));
  await world.clock.advance(10_000);
  const transactions = jest.spyOn(zk, 'transaction');
  await world.during(world.requestor.giveBack(taken));
  await world.until('the node is gone', () => world.nodes().size === 0);
  expect(transactions).toHaveBeenCalledTimes(2);
  await world.end();
});

it('the launcher does not call the cloud with an unconfirmed session, which may have lost the lock', async () => {
  const world = new World();
  const faults = { ...NO_FAULTS, 'delete-errors': 1 };
  const { zk } = await world.launcher([provider('demo', [pool('main', ['small'])])]);
  const id = await world.served(['small']);
  world.cloud.configure({ faults });
  const deletions = jest.spyOn(world.cloud, 'deleteInstance');
  await world.giveBack(id);
  await world.until('the cloud has refused it', () => deletions.mock.calls.length > 2);
  world.server.partition(zk);
  await world.until('the session is in doubt', () => zk.state !== 'connected');
  deletions.mockClear();
  await world.clock.advance(8000);
  expect(deletions).not.toHaveBeenCalled();
  world.server.heal(zk);
  world.cloud.configure({ faults: NO_FAULTS });
  await world.until('the node is gone', () => world.nodes().size === 0);
  await world.end();
});

it('the launcher shows the answer of a cloud that refuses a deletion within seconds, not after the attempt', async () => {
  const world = new World();
  const decisions = new DecisionLog({ clock: world.clock });
  world.observation = { decisions };
  await world.launcher([provider('demo', [pool('main', ['small'])])]);
  const id = await world.served(['small']);
  const taken = await world.during(world.requestor.take(id));
  const [node] = taken.ids;
  world.cloud.configure({ faults: { ...NO_FAULTS, 'delete-errors': 1 } });
  await world.during(world.requestor.giveBack(taken));
  await world.clock.advance(15_000);
  const refused = decisions.of('node', node!).filter(({ what }) => what === 'deletion failed; retrying');
  expect(refused.map(({ reason }) => reason)).toEqual([expect.stringContaining('internal error of the cloud')]);
  world.cloud.configure({ faults: NO_FAULTS });
  await world.until('the node is gone', () => world.nodes().size === 0);
  expect(await world.end()).toEqual([]);
});

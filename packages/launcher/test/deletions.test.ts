/** Tests that deletions continue while other programs change the records. */

import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { DriverError, silentLogger, type LogFields, type Logger } from '@nodepool/core';
import type { CloudSettings, ExampleCloud } from '@nodepool/driver-example';
import { DecisionLog } from '@nodepool/status';
import { World, pool, provider, type RunningLauncher } from './support/world.js';

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

it('the launcher repeats a refused deletion as soon as the provider serves again', async () => {
  const world = new World();
  const lines: string[] = [];
  const log: Logger = { ...silentLogger, with: () => log, named: () => log, warn: (line) => void lines.push(line) };
  world.log = log;
  await world.launcher([provider('demo', [pool('main', ['small'])])]);
  const id = await world.served(['small']);
  const refusal = new DriverError('unexpected', 'the cloud refuses it for good');
  const refused = jest.spyOn(world.cloud, 'deleteInstance').mockImplementation(() => Promise.reject(refusal));
  await world.giveBack(id);
  await world.until('the cloud has refused it often', () => refused.mock.calls.length === 7);
  world.cloud.configure({ faults: { ...NO_FAULTS, 'list-errors': 1 } });
  await world.until('the provider fails', () => lines.includes('The provider is unreachable'));
  world.cloud.configure({ faults: NO_FAULTS });
  await world.until('the provider serves again', () => lines.includes('The provider serves its pools again'));
  refused.mockClear();
  await world.clock.advance(400);
  expect(refused).toHaveBeenCalledTimes(1);
  refused.mockRestore();
  await world.until('the node is gone', () => world.nodes().size === 0);
  expect(await world.end()).toEqual([]);
});

describe('a deletion that the cloud refuses', () => {
  let world: World;
  let lines: string[];
  let launchers: RunningLauncher[];
  let node: string;
  let refused: jest.SpiedFunction<ExampleCloud['deleteInstance']>;

  beforeEach(async () => {
    world = new World();
    lines = [];
    const line = (message: string): void => void lines.push(message);
    const log: Logger = { ...silentLogger, with: () => log, named: () => log, info: line, warn: line };
    world.log = log;
    const providers = [provider('demo', [pool('main', ['small'])])];
    launchers = [await world.launcher(providers), await world.launcher(providers, 'launcher2')];
    const id = await world.served(['small']);
    const taken = await world.during(world.requestor.take(id));
    node = taken.ids[0]!;
    const refusal = new DriverError('unexpected', 'the cloud refuses it for good');
    refused = jest.spyOn(world.cloud, 'deleteInstance').mockImplementation(() => Promise.reject(refusal));
    await world.during(world.requestor.giveBack(taken));
    // The next attempt is due half a minute later.
    await world.until('the cloud has refused it often', () => refused.mock.calls.length === 7);
  });

  function deletionsOf({ launcher }: RunningLauncher): readonly string[] {
    return launcher.activity().flatMap(({ deletions }) => deletions);
  }

  /** Returns the launcher that holds the lock of the node, and the other one. */
  function owners(): readonly [RunningLauncher, RunningLauncher] {
    const [first, second] = launchers;
    const isFirst = deletionsOf(first!).includes(node);
    return isFirst ? [first!, second!] : [second!, first!];
  }

  it('keeps its lock until the next attempt, so that no other launcher repeats it', async () => {
    expect(world.lockHolders().filter((path) => path.startsWith(`/nodepool/nodes/${node}/`))).toHaveLength(1);
    refused.mockRestore();
    await world.until('the node is gone', () => world.nodes().size === 0);
    const counted = ['Deleting node', 'Deleting a node failed; retrying', 'Deleted node'];
    const failures = Array<string>(7).fill('Deleting a node failed; retrying');
    expect(lines.filter((line) => counted.includes(line))).toEqual([counted[0], ...failures, counted[2]]);
    expect(world.cloud.existingInstances()).toEqual([]);
    expect(await world.end()).toEqual([]);
  });

  it('continues at once with a changed configuration of the provider', async () => {
    const [owner] = owners();
    refused.mockRestore();
    const started = world.clock.now();
    const changed = world.config([provider('demo', [pool('main', ['small'])], { 'launch-timeout': 1000 })]);
    await world.during(Promise.resolve(owner.launcher.apply(changed)));
    await world.until('the node is gone', () => world.nodes().size === 0);
    expect(world.clock.now() - started).toBeLessThan(20_000);
    expect(lines.filter((line) => line === 'Deleting node')).toHaveLength(2);
    expect(await world.end()).toEqual([]);
  });

  it('is abandoned by a launcher whose session ends before the next attempt', async () => {
    const [owner, other] = owners();
    world.server.partition(owner.zk);
    const attempts = refused.mock.calls.length;
    await world.until('the other launcher repeats it', () => refused.mock.calls.length > attempts);
    expect(deletionsOf(other)).toEqual([node]);
    world.server.heal(owner.zk);
    await world.until('the session is replaced', () => owner.zk.state === 'connected');
    await world.clock.advance(2000);
    expect(deletionsOf(owner)).toEqual([]);
    expect(lines).toContain('Abandoned the deletion: another program owns the node now');
    refused.mockRestore();
    await world.until('the node is gone', () => world.nodes().size === 0);
    expect(await world.end()).toEqual([]);
  });
});

/** The interruption of a node, which a launcher writes while another program has the lock. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { NodeInterruption } from '@nodepool/core';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { LostOwnershipError, type NodeHandle, type Store } from '@nodepool/store';
import { Simulation, given, nodeData } from '../simulation.js';

const LOSS: NodeInterruption = { kind: 'reclaimed', reason: 'spot', time: 5, ends_at: 125 };

let simulation: Simulation;
let launcher: Store;
let connection: ZooKeeper;
let holder: NodeHandle;

beforeEach(async () => {
  simulation = new Simulation();
  launcher = await simulation.store();
  connection = simulation.client();
  const requestor = await simulation.store(connection);
  const [id] = await simulation.run(requestor.nodes.create([nodeData()]));
  await simulation.settled();
  const change = { state: 'in-use' } as const;
  holder = given(await simulation.run(requestor.nodes.tryLock(given(id), { change })));
  await simulation.settled();
});

afterEach(() => simulation.close());

const entry = (): ReturnType<Store['nodes']['get']> => launcher.nodes.get(holder.id);
const record = (): unknown => simulation.json(`/nodepool/nodes/${holder.id}`);
const interrupt = (loss: NodeInterruption | null = LOSS): Promise<boolean> =>
  simulation.run(launcher.nodes.setInterruption(given(entry()), loss));

describe('an interruption', () => {
  it('is one more field of the record, and is removed without a trace', async () => {
    const before = record();
    expect(await interrupt()).toBe(true);
    expect(record()).toEqual({ ...(before as object), interruption: LOSS });
    expect(entry()?.node.interruption).toEqual(LOSS);
    expect(await interrupt(null)).toBe(true);
    expect(record()).toEqual(before);
  });

  it('does not overwrite a change by the holder', async () => {
    const known = given(entry());
    await simulation.run(holder.update({ user_data: 'x' }));
    expect(await simulation.run(launcher.nodes.setInterruption(known, LOSS))).toBe(false);
    expect(record()).toMatchObject({ user_data: 'x' });
    expect(record()).not.toHaveProperty('interruption');
  });

  it('is preserved by each later write of the holder', async () => {
    await interrupt();
    await simulation.run(holder.update({ user_data: 'x' }));
    expect(holder.node.interruption).toEqual(LOSS);
    await interrupt(null);
    await simulation.run(holder.update({ comment: 'y' }));
    await interrupt();
    await simulation.run(holder.release({ state: 'used' }));
    expect(record()).toMatchObject({ state: 'used', user_data: 'x', comment: 'y', interruption: LOSS });
    expect(simulation.contenders()).toEqual([]);
  });

  it('that is written at the same time as a change of the holder harms neither', async () => {
    const known = given(entry());
    const both = Promise.all([holder.update({ user_data: 'x' }), launcher.nodes.setInterruption(known, LOSS)]);
    const [, written] = await simulation.run(both);
    expect(record()).toMatchObject({ user_data: 'x', ...(written ? { interruption: LOSS } : {}) });
  });

  it.each(['before-applied', 'after-applied'] as const)(
    'that follows a change of the holder whose answer is lost (%s) harms neither',
    async (when) => {
      simulation.server.loseNextWrite(connection, when);
      const known = given(entry());
      const update = holder.update({ user_data: 'x' });
      const path = `/nodepool/nodes/${holder.id}`;
      const mark = async (): Promise<void> => {
        for (;;) {
          const { data, stat } = await simulation.other.get(path);
          const changed = { ...(JSON.parse(new TextDecoder().decode(data)) as object), interruption: LOSS };
          if (when === 'after-applied' && stat.version === known.version) continue;
          await simulation.other.set(path, new TextEncoder().encode(JSON.stringify(changed)), {
            version: stat.version,
          });
          return;
        }
      };
      await simulation.run(Promise.all([update, mark()]));
      expect(record()).toMatchObject({ user_data: 'x', interruption: LOSS });
      await simulation.run(holder.release({ state: 'used' }));
      expect(record()).toMatchObject({ state: 'used', user_data: 'x', interruption: LOSS });
    },
  );

  it('does not hide any other change of the record', async () => {
    const path = `/nodepool/nodes/${holder.id}`;
    const { data } = await simulation.run(simulation.other.get(path));
    const changed = { ...(JSON.parse(new TextDecoder().decode(data)) as object), interruption: LOSS, comment: 'other' };
    await simulation.run(simulation.other.set(path, new TextEncoder().encode(JSON.stringify(changed))));
    await expect(simulation.run(holder.update({ user_data: 'x' }))).rejects.toThrow(LostOwnershipError);
    expect(record()).toEqual(changed);
  });

  it('does not give a lost lock back', async () => {
    await interrupt();
    const path = `/nodepool/nodes/${holder.id}/lock`;
    const { children } = await simulation.run(simulation.other.children(path));
    await simulation.run(simulation.other.delete(`${path}/${children[0] ?? ''}`));
    await expect(simulation.run(holder.update({ user_data: 'x' }))).rejects.toThrow(LostOwnershipError);
    expect(record()).not.toMatchObject({ user_data: 'x' });
  });
});

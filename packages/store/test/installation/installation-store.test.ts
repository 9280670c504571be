/** The id of the installation: created once, shared by every store of one ensemble, and restored by an operator. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { InstallationIdError } from '../../src/errors.js';
import { openStore, type Store } from '@nodepool/store';
import { seededRandom } from '@nodepool/core/testing';
import { Simulation } from '../simulation.js';

const PATH = '/nodepool/installation';
let simulation: Simulation;

beforeEach(() => {
  simulation = new Simulation();
});

afterEach(() => simulation.close());

function onServer(): string {
  return new TextDecoder().decode(simulation.server.dump().get(PATH)?.data);
}

describe('the id of an installation', () => {
  it('is created once by any number of processes that start concurrently', async () => {
    const stores = Array.from({ length: 5 }, (_, seed) =>
      openStore(simulation.client(), {
        clock: simulation.clock,
        random: seededRandom(seed),
        identifier: `test-${seed}`,
      }),
    );
    for (const store of stores) store.start();
    await simulation.run(Promise.all(stores.map((store) => store.ready())));
    expect(onServer()).toMatch(/^[0-9a-f]{16}$/);
    expect(new Set(stores.map(({ installation }) => installation.id))).toEqual(new Set([onServer()]));
    for (const store of stores) store.close();
  });

  it('that cannot be read is not replaced if another process has repaired it meanwhile', async () => {
    await simulation.store();
    await simulation.run(simulation.other.set(PATH, Buffer.from('not an id')));
    const client = simulation.client();
    const get = client.get.bind(client);
    let reads = 0;
    client.get = async (path, options) => {
      const found = await get(path, options);
      if (path === PATH && (reads += 1) === 1) await simulation.other.set(PATH, Buffer.from('repaired'));
      return found;
    };
    const store = await simulation.store(client);
    await simulation.settled();
    expect([store.installation.id, onServer()]).toEqual(['repaired', 'repaired']);
  });

  it('is unchanged after a restart', async () => {
    const before = (await simulation.store()).installation.id;
    expect((await simulation.store()).installation.id).toBe(before);
  });

  it('differs between ensembles', async () => {
    const other = new Simulation({ seed: 7 });
    expect((await other.store()).installation.id).not.toBe((await simulation.store()).installation.id);
    await other.close();
  });

  it('is updated in running processes when an operator sets it', async () => {
    const [one, two] = [await simulation.store(), await simulation.store()];
    await simulation.run(one.installation.set('production'));
    await simulation.settled();
    expect([one.installation.id, two.installation.id, onServer()]).toEqual(['production', 'production', 'production']);
    expect(await simulation.run(two.installation.read())).toBe('production');
  });

  it('is a new one if a running process finds none, because the ensemble may be another one', async () => {
    const store = await simulation.store();
    const { id } = store.installation;
    await simulation.run(simulation.other.delete(PATH));
    await simulation.settled();
    expect(onServer()).toMatch(/^[0-9a-f]{16}$/);
    expect(onServer()).not.toBe(id);
    expect(store.installation.id).toBe(onServer());
  });

  it.each(['', 'Two words', 'a'.repeat(41), '\u0000'])('replaces the invalid %j', async (text) => {
    await simulation.put(PATH, text);
    const store = await simulation.store();
    expect(onServer()).toMatch(/^[0-9a-f]{16}$/);
    expect(store.installation.id).toBe(onServer());
  });

  it('is unchanged when an operator writes an invalid one', async () => {
    const store: Store = await simulation.store();
    const { id } = store.installation;
    await simulation.put(PATH, 'No Such Thing');
    expect([onServer(), store.installation.id]).toEqual([id, id]);
    await expect(store.installation.set('No Such Thing')).rejects.toThrow(InstallationIdError);
    expect(store.complete).toBe(true);
  });
});

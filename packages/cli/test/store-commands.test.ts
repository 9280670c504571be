import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { World } from './world.js';

let world: World;

beforeEach(async () => {
  world = new World();
  await world.start();
});

afterEach(() => world.stop());

/** Returns the row of a table with one row; the lower border if it has none. */
function row(table: string): string | undefined {
  return table.split('\n')[3];
}

describe('nodepool list', () => {
  it('shows the nodes as a table, including locks', async () => {
    const free = await world.node({});
    const locked = await world.node({ state: 'building', type: ['small', 'big'] });
    await world.finish(world.store.nodes.lock(locked));
    const { code, out } = await world.run('list');
    expect(code).toBe(0);
    const lines = out.printed.split('\n');
    expect(lines[1]).toMatch(
      /^\| ID +\| Provider \| Label +\| Server ID \| Public IPv4 \| IPv6 \| State +\| Age +\| Locked +\|$/,
    );
    expect(lines[3]).toContain(
      `| ${free} | cloud    | small     | server-1  | 192.0.2.7   |      | ready    | 00:00:00:00 | unlocked |`,
    );
    expect(lines[4]).toContain('| building | 00:00:00:00 | locked   |');
  });

  it('shows more fields with --detail, and all of them as JSON', async () => {
    await world.node({ comment: 'mine', connection_port: { token: 'hush' } });
    expect((await world.run('list')).out.printed).not.toContain('mine');
    expect((await world.run('list', '--detail')).out.printed).toContain('mine');
    const json = (await world.run('list', '--detail', '--format', 'json')).out.printed;
    expect(JSON.parse(json)).toEqual([
      expect.objectContaining({ label: ['small'], comment: 'mine', connection_port: 'redacted' }),
    ]);
    expect(json).not.toContain('hush');
  });

  it('reports unreadable records', async () => {
    await world.finish(world.store.zooKeeper.create('/nodepool/nodes/0000000099', Buffer.from('{"state":')));
    const { code, out } = await world.run('list');
    expect(code).toBe(0);
    expect(out.noted).toContain('not listed: /nodepool/nodes/0000000099 cannot be read');
  });
});

describe('nodepool request-list and label-list', () => {
  it('show all records', async () => {
    await world.pool(['small', 'big']);
    const request = world.cli('request', 'small', 'big');
    await world.until(() => request.out.noted.includes('requested'));
    expect(JSON.parse((await world.run('request-list', '--format', 'json')).out.printed)).toEqual([
      expect.objectContaining({ state: 'requested', node_types: ['small', 'big'], requestor: 'nodepool-cli' }),
    ]);
    expect((await world.run('label-list')).out.printed.split('\n')).toEqual([
      '+-------+',
      '| Label |',
      '+-------+',
      '| big   |',
      '| small |',
      '+-------+',
    ]);
    request.interrupt();
    await world.until(() => request.code !== undefined);
  });
});

describe('an ensemble that no Nodepool has used', () => {
  it.each([
    [0, ['list']],
    [0, ['request-list']],
    [0, ['label-list']],
    [0, ['image-list']],
    [0, ['dib-image-list']],
    [0, ['image-status']],
    [1, ['info', 'nowhere']],
    [1, ['erase', 'nowhere', '--force']],
    [1, ['delete', '0000000001']],
    [1, ['describe', 'node', '0000000001']],
    [1, ['image-build', 'no-image']],
    [1, ['image-pause', 'no-image']],
    [1, ['installation-id']],
  ])('gets no znode from a command that reads or fails: exit code %d of %s', async (code, command) => {
    const empty = world.useEmptyEnsemble();
    const before = [...empty.dump().keys()];
    expect((await world.run(...command)).code).toBe(code);
    expect([...empty.dump().keys()]).toEqual(before);
  });

  it('gets only the znodes of a request from a request', async () => {
    const empty = world.useEmptyEnsemble();
    const request = world.cli('request', 'small');
    await world.until(() => request.out.noted.includes('requested'));
    expect([...empty.dump().keys()].filter((path) => !/^\/(zookeeper|$)/.test(path))).toEqual([
      '/nodepool',
      '/nodepool/requests',
      expect.stringMatching(/^\/nodepool\/requests\/\d{3}-\d{10}$/),
    ]);
    request.interrupt();
    await world.until(() => request.code !== undefined);
  });
});

describe('nodepool delete', () => {
  it('marks the node as deleting, unlocked, for a launcher', async () => {
    const id = await world.node({});
    const { code, out } = await world.run('delete', id);
    expect(code).toBe(0);
    expect(out.noted).toContain(`node ${id} will be deleted by a launcher of provider cloud`);
    expect(row(out.printed)).toMatch(
      new RegExp(`^\\| ${id} \\| cloud .*\\| deleting \\| 00:00:00:00 \\| unlocked \\|$`),
    );
    await world.until(() => world.stateOf(id) === 'deleting');
    await world.until(() => world.store.nodes.get(id)?.locked === false);
  });

  it('accepts an id without leading zeros', async () => {
    const id = await world.node({});
    expect((await world.run('delete', String(Number(id)))).code).toBe(0);
    await world.until(() => world.stateOf(id) === 'deleting');
  });

  it('reports a node that is locked for five seconds, and does not change it', async () => {
    const id = await world.node({});
    await world.finish(world.store.nodes.lock(id));
    const running = world.cli('delete', id);
    await world.until(() => world.cliClients.length === 1);
    while (running.code === undefined) await world.clock.advance(1000);
    expect(running.code).toBe(1);
    expect(running.out.noted).toMatch(new RegExp(`nodepool: node ${id} is busy: .*5 s; try again`));
    expect(world.stateOf(id)).toBe('ready');
    // The command's own contender is deleted, too.
    expect([...world.server.dump().keys()].filter((path) => path.includes('__lock__'))).toHaveLength(1);
  });

  it('takes a node away from a durable lease only if asked to, and names its owner', async () => {
    const id = await world.node({ state: 'in-use' });
    const [held] = (await world.finish(world.store.nodes.tryLockAll([{ id }], { owner: 'ci/main' }))) ?? [];
    const refused = await world.run('delete', id);
    expect([refused.code, refused.out.noted]).toEqual([
      1,
      expect.stringContaining(`node ${id} is busy: it belongs to a durable lease of ci/main`),
    ]);
    expect((await world.run('describe', 'node', id)).out.printed).toMatch(/Locked by: +ci\/main \(durable lease\)/);
    expect(world.stateOf(id)).toBe('in-use');

    expect((await world.run('delete', id, '--break-lease')).code).toBe(0);
    await world.until(() => world.stateOf(id) === 'deleting');
    await world.until(() => world.store.nodes.get(id)?.locked === false);
    await expect(world.finish(held!.update({ comment: 'mine' }))).rejects.toMatchObject({ code: 'lost-ownership' });
  });

  it('says of a backing node that its slots are in use, and deletes it only if asked to', async () => {
    const owner = 'NodePool:metastatic:slots';
    const used = { 0: { node: '0000000009', attempt: null, pool: null } };
    const data = JSON.stringify({ owner, label: 'small', slots: 4, failed: false, used });
    const id = await world.node({ state: 'in-use', user_data: data });
    await world.finish(world.store.nodes.tryLockAll([{ id }], { owner }));
    const refused = await world.run('delete', id);
    expect([refused.code, refused.out.noted]).toEqual([
      1,
      expect.stringContaining(`${owner} has divided it into slots for label small, 1 of 4 used`),
    ]);
    expect(refused.out.noted).toContain(`nodepool delete ${id} --break-lease`);
    expect((await world.run('delete', id, '--break-lease')).code).toBe(0);
    await world.until(() => world.stateOf(id) === 'deleting');
  });

  it('deletes a backing node without nodes, but not one whose data does not show its slots in use', async () => {
    const owner = 'NodePool:metastatic:slots';
    const data = { owner, label: 'small', slots: 4, failed: false };
    const texts = { ours: JSON.stringify({ ...data, used: {} }), theirs: JSON.stringify(data), damaged: '{"owner"' };
    const codes: Record<string, unknown> = {};
    for (const [name, user_data] of Object.entries(texts)) {
      const id = await world.node({ state: 'in-use', requestor: owner, user_data });
      await world.finish(world.store.nodes.tryLockAll([{ id }], { owner }));
      codes[name] = [(await world.run('delete', id)).code, world.stateOf(id)];
    }
    expect(codes).toEqual({ ours: [0, 'deleting'], theirs: [1, 'in-use'], damaged: [1, 'in-use'] });
  });

  it('names the launcher that holds the lock, and accepts a node that it is already deleting', async () => {
    const launching = await world.node({ state: 'building', launcher: 'nl01' });
    const deleting = await world.node({ state: 'deleting', launcher: 'nl01' });
    await world.finish(world.store.nodes.lock(launching));
    const deletion = await world.finish(world.store.nodes.lock(deleting));
    const refused = world.cli('delete', launching);
    await world.until(() => world.cliClients.length === 1);
    while (refused.code === undefined) await world.clock.advance(1000);
    expect(refused.out.noted).toContain('its launcher nl01, which launches it, has held its lock');
    const { code, out } = await world.run('delete', deleting);
    expect([code, out.noted]).toEqual([0, expect.stringContaining('is already being deleted by a launcher')]);
    const waiting = world.cli('delete', '--now', deleting);
    await world.until(() => waiting.out.noted.includes(`${deleting} (deleting, locked by a launcher)`));
    await world.finish(deletion.remove());
    await world.until(() => waiting.code !== undefined);
    expect(waiting.code).toBe(0);
  });

  it.each(['0000009999', 'server-1', '../requests', ''])('rejects an invalid node id: %j', async (id) => {
    const { code, out } = await world.run('delete', id);
    expect(code).toBe(1);
    expect(out.noted).toMatch(/there is no node|is not the id of a node/);
  });

  it('--now waits until the node is deleted, and prints what it waits for', async () => {
    await world.pool(['small']);
    const id = await world.node({});
    const running = world.cli('delete', '--now', id);
    await world.until(() => running.out.noted.includes(`waiting until the cloud has deleted: ${id} (deleting)`));
    expect(running.code).toBeUndefined();
    await world.remove(id);
    await world.until(() => running.code !== undefined);
    expect(running.code).toBe(0);
    expect(running.out.noted).toContain(`node ${id} is deleted`);
    expect(row(running.out.printed)).toMatch(/^[+-]+$/);
  });

  it('--now reports that no launcher is running, and can be interrupted', async () => {
    const id = await world.node({});
    const running = world.cli('delete', '--now', id);
    await world.until(() => running.out.noted.includes('waiting until'));
    expect(running.out.noted).toContain('no launcher that serves provider cloud is registered');
    running.interrupt();
    await world.until(() => running.code !== undefined);
    expect(running.code).toBe(1);
    expect(running.out.noted).toContain('nodepool: interrupted by SIGINT');
  });
});

describe('nodepool hold', () => {
  it('sets the node on hold, with the reason', async () => {
    const id = await world.node({});
    const { code, out } = await world.run('hold', id, '--comment', 'ask Ada');
    expect([code, row(out.printed)]).toEqual([
      0,
      expect.stringMatching(`^\\| ${id} .*\\| hold  \\| .*\\| unlocked \\|$`),
    ]);
    await world.until(() => world.stateOf(id) === 'hold');
    expect(world.store.nodes.get(id)?.node.comment).toBe('ask Ada');
    await world.until(() => world.store.nodes.get(id)?.locked === false);
  });

  it('preserves the comment when none is given', async () => {
    const id = await world.node({ comment: 'earlier' });
    await world.run('hold', id);
    await world.until(() => world.stateOf(id) === 'hold');
    expect(world.store.nodes.get(id)?.node.comment).toBe('earlier');
  });

  it('holds a backing node, whose lock and data stay, and says what that means', async () => {
    const owner = 'NodePool:metastatic:slots';
    const used = { 0: { node: '0000000009', attempt: null, pool: null } };
    const user_data = JSON.stringify({ owner, label: 'small', slots: 4, failed: false, used });
    const id = await world.node({ state: 'in-use', user_data });
    const [held] = (await world.finish(world.store.nodes.tryLockAll([{ id }], { owner }))) ?? [];
    const { code, out } = await world.run('hold', id, '--comment', 'ask Ada');
    expect([code, out.noted]).toEqual([
      0,
      expect.stringContaining('with slots, 1 of 4 used: it gets no further nodes'),
    ]);
    await world.until(() => world.stateOf(id) === 'hold');
    expect(world.store.nodes.get(id)).toMatchObject({ locked: true, node: { user_data, comment: 'ask Ada' } });
    const lock = held!.lock;
    expect((await world.finish(world.store.nodes.adopt(id, owner, { takeOver: false })))?.lock.path).toBe(lock.path);
    expect((await world.run('delete', id)).code).toBe(1);
  });

  it('leaves a durable lease that is not of a backing node', async () => {
    for (const owner of ['ci/main', 'NodePool:metastatic:other']) {
      const user_data = JSON.stringify({ owner: 'NodePool:metastatic:slots', label: 'small', slots: 4, used: {} });
      const id = await world.node({ state: 'in-use', user_data });
      await world.finish(world.store.nodes.tryLockAll([{ id }], { owner }));
      expect((await world.run('hold', id)).code).toBe(1);
      expect((await world.run('delete', id)).code).toBe(1);
      expect(world.stateOf(id)).toBe('in-use');
    }
  });

  it('rejects a node that is being deleted', async () => {
    const id = await world.node({ state: 'deleting' });
    const { code, out } = await world.run('hold', id);
    expect(code).toBe(1);
    expect(out.noted).toContain(`node ${id} cannot be held`);
    expect(world.stateOf(id)).toBe('deleting');
    await world.until(() => world.store.nodes.get(id)?.locked === false);
  });
});

describe('an invalid configuration', () => {
  it('is reported with all its problems, without a connection', async () => {
    await world.writeConfig('zookeeper-servers: []\ncolour: red\n');
    const { code, out } = await world.run('list');
    expect(code).toBe(1);
    expect(out.noted).toMatch(/the configuration cannot be used:\n {2}.*nodepool\.yaml:.*\n {2}.*nodepool\.yaml:/);
    expect(world.cliClients).toEqual([]);
  });
});

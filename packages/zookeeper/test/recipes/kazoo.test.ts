/** The lock excludes the lock of kazoo, the Python client, and vice versa. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { lockRecipe, type Locks, type ZooKeeper } from '../../src/index.js';
import { EventLog } from '../behaviour/harness.js';
import { RealFactory } from '../behaviour/real-factory.js';

const PYTHON = process.env['KAZOO_PYTHON'] ?? '/usr/bin/python3';
const hasKazoo = spawnSync(PYTHON, ['-c', 'import kazoo']).status === 0;
const LOCK = '/lock';

class KazooPeer {
  private readonly lines: Interface;
  private readonly answers: AsyncIterator<string>;

  private constructor(private readonly child: ChildProcess) {
    if (child.stdout === null) throw new Error('no output of the Python process');
    this.lines = createInterface(child.stdout);
    this.answers = this.lines[Symbol.asyncIterator]();
  }

  static async start(servers: string): Promise<KazooPeer> {
    const script = join(__dirname, 'kazoo_peer.py');
    const peer = new KazooPeer(spawn(PYTHON, [script, servers, LOCK], { stdio: ['pipe', 'pipe', 'inherit'] }));
    expect(await peer.answer()).toBe('ready');
    return peer;
  }

  async ask(command: string): Promise<string> {
    this.child.stdin?.write(`${command}\n`);
    return this.answer();
  }

  async stop(): Promise<void> {
    this.child.stdin?.end();
    if (this.child.exitCode === null) await once(this.child, 'exit');
    this.lines.close();
  }

  private async answer(): Promise<string> {
    const { value, done } = await this.answers.next();
    if (done === true) throw new Error('the Python process ended');
    return value;
  }
}

/** Starts to wait for a new contender. Resolves once the watch is set; `joined` resolves when a contender joins. */
async function nextContender(zk: ZooKeeper): Promise<{ readonly joined: Promise<unknown> }> {
  const log = new EventLog();
  zk.watch(LOCK, 'persistent-recursive', log);
  await log.atLeast(1);
  return { joined: log.atLeast(2) };
}

(hasKazoo ? describe : describe.skip)('the lock of kazoo and ours', () => {
  const factory = new RealFactory();
  let zk: ZooKeeper;
  let locks: Locks;
  let kazoo: KazooPeer;

  beforeAll(() => factory.start());
  afterAll(() => factory.stop());
  beforeEach(async () => {
    zk = await factory.connect();
    await zk.connected();
    locks = lockRecipe(zk, { identifier: 'ours' });
    kazoo = await KazooPeer.start(factory.servers);
  });
  afterEach(async () => {
    await kazoo.stop();
    await zk.close();
  });

  it('a lock is not acquired while kazoo holds it, and is acquired after the release', async () => {
    expect(await kazoo.ask('acquire')).toBe('acquired');
    expect(await locks.tryAcquire(LOCK)).toBeUndefined();
    expect(await locks.tryAcquire(LOCK, { exists: false })).toBeUndefined();
    const line = await nextContender(zk);
    let got = false;
    const waiting = locks.acquire(LOCK).then((lock) => {
      got = true;
      return lock;
    });
    await line.joined;
    expect(await kazoo.ask('contenders')).toBe('kazoo,ours');
    expect(got).toBe(false);
    expect(await kazoo.ask('release')).toBe('released');
    const lock = await waiting;
    expect(await kazoo.ask('try')).toBe('refused');
    await lock.release();
    expect((await zk.children(LOCK)).children).toEqual([]);
  });

  it('kazoo does not acquire a lock while this client holds it, and acquires it after the release', async () => {
    const taken = await locks.tryAcquire(LOCK);
    expect(taken).toBeDefined();
    expect(await kazoo.ask('try')).toBe('refused');
    expect(await kazoo.ask('contenders')).toBe('ours');
    const line = await nextContender(zk);
    const acquired = kazoo.ask('acquire');
    await line.joined;
    await zk.transaction([taken!.lock.fence, taken!.lock.releaseOp]);
    taken!.lock.released();
    expect(await acquired).toBe('acquired');
    expect(await locks.tryAcquire(LOCK)).toBeUndefined();
    expect(await kazoo.ask('release')).toBe('released');
    const again = await locks.tryAcquire(LOCK);
    expect(again).toBeDefined();
    await again?.lock.release();
  });

  it('a persistent lock of kazoo outlives its process, and is adopted with its identifier', async () => {
    expect(await kazoo.ask('persist')).toBe('acquired');
    await kazoo.stop();
    kazoo = await KazooPeer.start(factory.servers);
    expect(await kazoo.ask('try')).toBe('refused');
    const adopted = await locks.adopt(LOCK, 'kazoo');
    expect(adopted).toBeDefined();
    expect(await kazoo.ask('contenders')).toBe('kazoo');
    await adopted?.release();
    expect(await kazoo.ask('try')).toBe('acquired');
    expect(await kazoo.ask('release')).toBe('released');
  });

  it('a persistent lock of this client looks to kazoo like one of its own', async () => {
    const taken = await locks.tryAcquire(LOCK, { owner: 'NodePool:metastatic:cloud' });
    await zk.close();
    expect(await kazoo.ask('contenders')).toBe('NodePool:metastatic:cloud');
    expect(await kazoo.ask('try')).toBe('refused');
    zk = await factory.connect();
    const adopted = await lockRecipe(zk).adopt(LOCK, 'NodePool:metastatic:cloud');
    expect(adopted?.contender).toBe(taken?.lock.contender);
    await adopted?.release();
  });
});

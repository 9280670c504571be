/** Tests of the stack dump on SIGUSR2. */

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Diagnostics } from '@nodepool/daemon';
import { TaskSupervisor, silentLogger, type LogFields, type Logger } from '@nodepool/core';
import { dumpStacks } from '../../src/stack-dump.js';
import { World, pool, provider } from '../support/world.js';

interface Line {
  readonly name: string;
  readonly message: string;
  readonly fields: LogFields;
}

let world: World;
let folder: string;
let lines: Line[];
beforeEach(async () => {
  world = new World();
  folder = await mkdtemp(join(tmpdir(), 'nodepool-profile-'));
  lines = [];
});
afterEach(async () => {
  await rm(folder, { recursive: true });
  expect(await world.end()).toEqual([]);
});

function logger(name = 'nodepool'): Logger {
  const write = (message: string, fields: LogFields = {}): void => void lines.push({ name, message, fields });
  return {
    ...silentLogger,
    info: write,
    error: (message, error) => write(message, { error }),
    named: (other) => logger(other),
  };
}

async function diagnostics(where = folder): Promise<{ diagnostics: Diagnostics; tasks: TaskSupervisor }> {
  const { store, launcher } = await world.launcher([provider('demo', [pool('main', ['small'])])]);
  const tasks = new TaskSupervisor(world.clock, () => undefined);
  const activity = (): ReturnType<typeof launcher.activity> => launcher.activity();
  const eventLoopDelay = (): { p50: number; p99: number; max: number } => ({ p50: 0, p99: 0.25, max: 1 });
  return {
    tasks,
    diagnostics: new Diagnostics({
      program: 'nodepool-launcher',
      clock: world.clock,
      log: logger(),
      dump: (log) => dumpStacks({ store, tasks, activity, eventLoopDelay }, log),
      folder: where,
    }),
  };
}

describe('SIGUSR2', () => {
  it('logs running work and what it waits for', async () => {
    world.cloud.configure({ bootTimeMs: [60_000, 60_000] });
    const { diagnostics: dumper, tasks } = await diagnostics();
    const id = await world.submit(['small']);
    await world.until('the instance boots', () => world.cloud.existingInstances().length === 1);
    let finish: () => void = () => undefined;
    tasks.run('count sheep', async (task) => {
      task.waitingFor('sheep');
      await new Promise<void>((resolve) => (finish = resolve));
    });
    dumper.signalled();
    await dumper.stop();
    const dump = lines.filter(({ name }) => name === 'nodepool.stack_dump');
    const of = (message: string): LogFields[] =>
      dump.filter((line) => line.message === message).map(({ fields }) => fields);
    expect(of('Stack dump begins')).toEqual([
      expect.objectContaining({
        zookeeper: 'connected',
        session_confirmed: true,
        nodes: 1,
        requests: 1,
        event_loop_delay: { p50: 0, p99: 0.25, max: 1 },
        memory: expect.objectContaining({ rss: expect.any(Number) }),
      }),
    ]);
    expect(of('Pool')).toEqual([expect.objectContaining({ provider: 'demo', pool: 'main', waiting: 0 })]);
    expect(of('Request in progress')).toEqual([
      expect.objectContaining({
        node_request_id: id,
        event_id: 'event',
        locks: [`/nodepool/requests-lock/${id}`, '/nodepool/nodes/0000000000/lock'],
        nodes: [{ id: '0000000000', label: 'small', state: 'building' }],
      }),
    ]);
    expect(of('Launch in progress')).toEqual([
      expect.objectContaining({ node_id: '0000000000', node_request_id: id, event_id: 'event', provider: 'demo' }),
    ]);
    const [task] = of('Background task');
    expect(task).toMatchObject({ task: 'count sheep', waiting_for: 'sheep' });
    expect(JSON.stringify(task?.started_from)).toContain('diagnostics.test');
    finish();
  });

  it('starts a CPU profile, and the next signal writes it', async () => {
    const { diagnostics: profiler } = await diagnostics();
    profiler.signalled();
    profiler.signalled();
    await profiler.stop();
    const [file] = await readdir(folder);
    expect(file).toMatch(/^nodepool-launcher-\d+-\d{8}-\d{6}\.cpuprofile$/);
    const profile = JSON.parse(await readFile(join(folder, file!), 'utf8')) as { nodes: unknown[] };
    expect(profile.nodes.length).toBeGreaterThan(0);
    expect(lines.at(-1)).toMatchObject({ message: 'CPU profile written', fields: { file: join(folder, file!) } });
  });

  it('is harmless when the profile cannot be written, and can be sent again', async () => {
    const { diagnostics: profiler } = await diagnostics(join(folder, 'missing'));
    profiler.signalled();
    profiler.signalled();
    profiler.signalled();
    await profiler.stop();
    const failures = lines.filter(({ message }) => message === 'CPU profile failed');
    expect(failures).toHaveLength(2);
    expect(String(failures[0]?.fields.error)).toMatch(/missing.*cannot be written.*check the folder/);
  });
});

/** The running configuration follows its files while they are valid. */

import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  ConfigWatcher,
  loadConfig,
  type ConfigDiff,
  type ConfigProblem,
  type ConfigWatcherOptions,
  type NodepoolConfig,
  type WatchFiles,
} from '@nodepool/config';
import { systemClock, TaskSupervisor, type Clock } from '@nodepool/core';
import { TestFolder } from './files.js';
import { ManualClock } from './manual-clock.js';
import { standIns } from './stand-in-drivers.js';

type Event =
  { readonly changed: NodepoolConfig; readonly diff: ConfigDiff } | { readonly refused: readonly ConfigProblem[] };

let folder: TestFolder;
let events: Event[];
let waiting: ((event: Event) => void)[];
let failures: unknown[];
/** Number of times that the files became valid again. */
let accepted: number;
/** Problems that were still there after a requested reload without news. */
let unchanged: (readonly ConfigProblem[])[];
let watcher: ConfigWatcher | undefined;

beforeEach(() => {
  folder = new TestFolder();
  events = [];
  waiting = [];
  failures = [];
  accepted = 0;
  unchanged = [];
});

afterEach(async () => {
  await watcher?.stop();
  watcher = undefined;
  folder.remove();
  expect(failures).toEqual([]);
});

function emit(event: Event): void {
  const next = waiting.shift();
  if (next === undefined) events.push(event);
  else next(event);
}

/** Resolves with the next unread event. */
function nextEvent(): Promise<Event> {
  const event = events.shift();
  return event === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(event);
}

function labelsOf(event: Event): string[] {
  return 'changed' in event ? [...event.changed.labels.keys()] : event.refused.map((problem) => problem.path);
}

function supervisor(clock: Clock): TaskSupervisor {
  return new TaskSupervisor(clock, (_name, error) => failures.push(error));
}

async function watch(file: string, options: Partial<ConfigWatcherOptions> = {}): Promise<ConfigWatcher> {
  const clock = options.clock ?? systemClock;
  const load = { file, env: {}, zookeeper: 'optional' as const, discoverDriver: standIns };
  const initial = await loadConfig(load);
  if (!initial.ok) throw new Error('the test starts with a file that is refused');
  const listener = {
    changed: (changed: NodepoolConfig, diff: ConfigDiff) => emit({ changed, diff }),
    refused: (refused: readonly ConfigProblem[]) => emit({ refused }),
    accepted: () => accepted++,
    unchanged: (problems: readonly ConfigProblem[]) => unchanged.push(problems),
  };
  watcher = new ConfigWatcher({
    ...load,
    initial,
    clock,
    listener,
    tasks: supervisor(clock),
    debounceMs: 20,
    ...options,
  });
  await watcher.start();
  return watcher;
}

describe('the watcher on a file system', () => {
  it('applies a file that is written in place', async () => {
    const file = folder.write('nodepool.yaml', 'labels: [{name: a}]\n');
    const watched = await watch(file);
    writeFileSync(file, 'labels: [{name: b}]\n');
    const event = await nextEvent();
    expect(labelsOf(event)).toEqual(['b']);
    expect('changed' in event && event.diff.labels).toEqual({ added: ['b'], removed: ['a'], changed: [] });
    expect([...watched.config.labels.keys()]).toEqual(['b']);
  });

  it('applies a file that is replaced, as by editors, every time', async () => {
    const file = folder.write('nodepool.yaml', 'labels: [{name: a}]\n');
    await watch(file);
    for (const name of ['b', 'c', 'd']) {
      renameSync(folder.write('nodepool.yaml.new', `labels: [{name: ${name}}]\n`), file);
      expect(labelsOf(await nextEvent())).toEqual([name]);
    }
  });

  it('applies a mounted ConfigMap, which changes by the swap of a symbolic link, every time', async () => {
    const mount = join(folder.path, 'mount');
    mkdirSync(mount);
    const publish = (version: string): void => {
      folder.write(`mount/..${version}/nodepool.yaml`, `labels: [{name: ${version}}]\n`);
      symlinkSync(`..${version}`, join(mount, '..data_tmp'));
      renameSync(join(mount, '..data_tmp'), join(mount, '..data'));
    };
    publish('v1');
    symlinkSync('..data/nodepool.yaml', join(mount, 'nodepool.yaml'));
    await watch(join(mount, 'nodepool.yaml'));
    for (const version of ['v2', 'v3', 'v4']) {
      publish(version);
      expect(labelsOf(await nextEvent())).toEqual([version]);
    }
  });

  it('follows a symbolic link to its target, also after a change of the link', async () => {
    folder.write('one/real.yaml', 'labels: [{name: a}]\n');
    const second = folder.write('two/real.yaml', 'labels: [{name: b}]\n');
    const file = join(folder.path, 'etc', 'nodepool.yaml');
    mkdirSync(join(folder.path, 'etc'));
    symlinkSync('../one/real.yaml', file);
    await watch(file);
    rmSync(file);
    symlinkSync('../two/real.yaml', file);
    let event = await nextEvent();
    // The file may not have existed between the removal and the new link.
    while ('refused' in event) event = await nextEvent();
    expect(labelsOf(event)).toEqual(['b']);
    writeFileSync(second, 'labels: [{name: c}]\n');
    expect(labelsOf(await nextEvent())).toEqual(['c']);
  });

  it('applies a file that, with its folder, was missing for some time', async () => {
    const file = folder.write('etc/nodepool.yaml', 'labels: [{name: a}]\n');
    await watch(file);
    renameSync(join(folder.path, 'etc'), join(folder.path, 'old'));
    expect(await nextEvent()).toMatchObject({ refused: [{ path: '', expected: 'a file that can be read' }] });
    folder.write('etc/nodepool.yaml', 'labels: [{name: b}]\n');
    let event = await nextEvent();
    // The file may be seen before it is written.
    while ('refused' in event) event = await nextEvent();
    expect(labelsOf(event)).toEqual(['b']);
  });

  it('reports the end of a problem when a rejected file is valid again, also when it is unchanged', async () => {
    const file = folder.write('nodepool.yaml', 'labels: [{name: a}]\n');
    const watching = await watch(file, {
      watchFiles: () => ({ ready: () => Promise.resolve(), close: () => Promise.resolve() }),
    });
    for (const text of ['labels: [{name: a}]\n# mended\n', 'labels: [{name: b}]\n']) {
      accepted = 0;
      writeFileSync(file, 'labels: [{nme: a}]\n');
      await watching.reload();
      await watching.reload();
      expect([accepted, watching.problems.length > 0]).toEqual([0, true]);
      writeFileSync(file, text);
      await watching.reload();
      await watching.reload();
      expect([accepted, watching.problems]).toEqual([1, []]);
    }
    expect(events.filter((event) => 'changed' in event).map(labelsOf)).toEqual([['b']]);
  });

  it('reports a requested reload that finds nothing new, with the problems of a refused file', async () => {
    const file = folder.write('nodepool.yaml', 'labels: [{name: a}]\n');
    const watching = await watch(file, {
      watchFiles: () => ({ ready: () => Promise.resolve(), close: () => Promise.resolve() }),
    });
    await watching.reload();
    expect(unchanged).toEqual([[]]);
    writeFileSync(file, 'labels: [{nme: a}]\n');
    await watching.reload();
    expect(unchanged).toHaveLength(1);
    await watching.reload();
    expect(unchanged[1]).toHaveLength(2);
    await watching.stop();
    await watching.reload();
    expect(unchanged).toHaveLength(2);
  });

  it('follows the secure file', async () => {
    const file = folder.write('nodepool.yaml', 'diskimages: [{name: a}]\n');
    const secureFile = folder.write('secret/secure.yaml', '');
    await watch(file, { secureFile });
    writeFileSync(secureFile, 'diskimages: [{name: a, env-vars: {X: "1"}}]\n');
    const event = await nextEvent();
    expect('changed' in event && event.changed.diskImages.get('a')?.envVars).toEqual({ X: '1' });
  });
});

describe('the watcher', () => {
  let notify: () => void;
  const byHand: WatchFiles = (_files, onEvent) => {
    notify = onEvent;
    return { ready: () => Promise.resolve(), close: () => Promise.resolve() };
  };

  it('reads the files once after the last of several events', async () => {
    const clock = new ManualClock();
    const file = folder.write('nodepool.yaml', 'labels: [{name: a}]\n');
    const tasks = supervisor(clock);
    await watch(file, { clock, tasks, watchFiles: byHand, debounceMs: 100 });
    writeFileSync(file, 'labels: [');
    notify();
    clock.advance(99);
    notify();
    clock.advance(99);
    expect(tasks.size).toBe(0);
    writeFileSync(file, 'labels: [{name: b}]\n');
    clock.advance(1);
    expect(labelsOf(await nextEvent())).toEqual(['b']);
    await tasks.idle();
    expect(events).toEqual([]);
  });

  it('detects a change between the initial load and its start', async () => {
    const file = folder.write('nodepool.yaml', 'labels: [{name: a}]\n');
    const changing: WatchFiles = (...args) => {
      writeFileSync(file, 'labels: [{name: b}]\n');
      return byHand(...args);
    };
    await watch(file, { watchFiles: changing });
    expect(events.map(labelsOf)).toEqual([['b']]);
  });

  it('keeps the configuration while a file is invalid, and reports the start and the end of that once', async () => {
    const file = folder.write('nodepool.yaml', 'labels: [{name: a}]\n');
    const watched = await watch(file, { watchFiles: byHand });
    writeFileSync(file, 'lables: []\n');
    await watched.reload();
    await watched.reload();
    expect(events.map(labelsOf)).toEqual([['lables']]);
    expect(watched.problems.map((problem) => problem.path)).toEqual(['lables']);
    expect([...watched.config.labels.keys()]).toEqual(['a']);
    writeFileSync(file, 'labls: []\n');
    await watched.reload();
    expect(events.map(labelsOf)).toEqual([['lables'], ['labls']]);
    writeFileSync(file, 'labels: [{name: a}]\n');
    await watched.reload();
    expect(watched.problems).toEqual([]);
    expect(events).toHaveLength(2);
  });

  it('reports nothing when the meaning did not change', async () => {
    const file = folder.write('nodepool.yaml', 'labels: [{name: a}]\n');
    const watched = await watch(file, { watchFiles: byHand });
    writeFileSync(file, '# a comment\nlabels:\n  - name: a\n');
    expect((await watched.reload()).ok).toBe(true);
    expect(events).toEqual([]);
  });

  it('searches for drivers again on a reload although the file is unchanged', async () => {
    let installed = false;
    const file = folder.write('nodepool.yaml', 'providers: [{name: p, driver: gce, project: a, region: b, zone: c}]\n');
    const discoverDriver: typeof standIns = (name, search) =>
      installed ? standIns(name, search) : Promise.reject(new Error('not installed'));
    const watched = await watch(file, { watchFiles: byHand, discoverDriver });
    await watched.reload();
    expect([...watched.config.brokenProviders.keys()]).toEqual(['p']);
    installed = true;
    await watched.reload();
    expect([...watched.config.providers.keys()]).toEqual(['p']);
    expect([...watched.config.brokenProviders.keys()]).toEqual([]);
    events = [];
  });

  it('applies the newest contents although an older load takes longer', async () => {
    const text = (label: string): string =>
      `labels: [{name: ${label}}]\nproviders: [{name: p, driver: gce, project: a, region: b, zone: c}]\n`;
    const file = folder.write('nodepool.yaml', text('a'));
    let release: (() => void) | undefined;
    let isSlow = true;
    const discoverDriver: typeof standIns = async (name, search) => {
      if (isSlow) {
        isSlow = false;
        await new Promise<void>((resolve) => (release = resolve));
      }
      return standIns(name, search);
    };
    const watched = await watch(file, { watchFiles: byHand, discoverDriver });
    writeFileSync(file, text('b'));
    const older = watched.reload();
    while (release === undefined) await setImmediate();
    writeFileSync(file, text('c'));
    const newer = watched.reload();
    // Enough turns for a load that does not wait for the older one.
    for (let turn = 0; turn < 20_000 && events.length === 0; turn += 1) await setImmediate();
    release();
    await Promise.all([older, newer]);
    expect([...watched.config.labels.keys()]).toEqual(['c']);
    events = [];
  });

  it('loads nothing at its start or after an event while the contents are unchanged', async () => {
    const clock = new ManualClock();
    const text = 'providers: [{name: p, driver: gce, project: a, region: b, zone: c}]\n';
    const file = folder.write('nodepool.yaml', text);
    const tasks = supervisor(clock);
    let loads = 0;
    const discoverDriver: typeof standIns = (name, search) => {
      loads += 1;
      return standIns(name, search);
    };
    const watched = await watch(file, { clock, tasks, watchFiles: byHand, discoverDriver });
    writeFileSync(file, text);
    notify();
    clock.advance(20);
    await tasks.idle();
    expect(loads).toBe(0);
    await watched.reload();
    expect(loads).toBe(1);
  });

  it('reports nothing after it was stopped', async () => {
    const clock = new ManualClock();
    const file = folder.write('nodepool.yaml', 'labels: [{name: a}]\n');
    const watched = await watch(file, { clock, watchFiles: byHand });
    writeFileSync(file, 'labels: [{name: b}]\n');
    notify();
    const reload = watched.reload();
    await watched.stop();
    clock.advance(1000);
    notify();
    await reload;
    expect(events).toEqual([]);
  });
});

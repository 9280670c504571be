/** Changes of the configuration that a running daemon applies, and those that it reports. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { loadConfig, type ConfigWatcher } from '@nodepool/config';
import { silentMetrics, TaskSupervisor, type LogFields } from '@nodepool/core';
import { silentLogger, VirtualClock } from '@nodepool/core/testing';
import { followConfig } from '@nodepool/daemon';

let folder: string;
let updates: (string | readonly string[])[];
let lines: { readonly message: string; readonly fields: LogFields | undefined }[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'follow-config-'));
  updates = [];
  lines = [];
});
afterEach(() => rmSync(folder, { recursive: true }));

const SERVERS = 'zookeeper-servers: [{host: zk1, port: 2181}, {host: zk2, port: 2181}]';

/** Changes the file from `before` to `after` while a daemon runs. */
async function change(before: string, after: string): Promise<ConfigWatcher> {
  const load = { file: join(folder, 'nodepool.yaml'), env: {} };
  writeFileSync(load.file, before);
  const loaded = await loadConfig(load);
  if (!loaded.ok) throw new Error('the first file is refused');
  const clock = new VirtualClock();
  const note = (message: string, fields?: LogFields): number => lines.push({ message, fields });
  const watcher = followConfig({
    ...{ load, loaded, clock, metrics: silentMetrics },
    log: { ...silentLogger, info: note, warn: note, error: (message, _error, fields) => note(message, fields) },
    tasks: new TaskSupervisor(clock, (_task, error) => {
      throw error;
    }),
    zooKeeper: { updateServers: (servers) => updates.push(servers) },
    readAtStart: ['webapp'],
    apply: () => undefined,
  });
  writeFileSync(load.file, after);
  await watcher.reload();
  return watcher;
}

it('a daemon uses changed servers of ZooKeeper at once', async () => {
  const watcher = await change(`${SERVERS}\nlabels: []`, `${SERVERS.replace('zk2', 'zk3')}\nlabels: []`);
  expect(updates).toEqual([['zk1:2181', 'zk3:2181']]);
  writeFileSync(join(folder, 'nodepool.yaml'), `${SERVERS.replace('zk2', 'zk3')}\nlabels: [{name: a}]`);
  await watcher.reload();
  expect(updates).toHaveLength(1);
  expect(lines.map(({ message }) => message)).toEqual([
    'Applying the changed configuration',
    'Applying the changed configuration',
  ]);
});

it('a daemon reports changed settings that it reads only at its start', async () => {
  const after = `${SERVERS.replace('port: 2181}', 'port: 2181, chroot: /ci}')}
zookeeper-timeout: 20
webapp: {port: 1}
images-dir: /elsewhere`;
  await change(SERVERS, after);
  expect(updates).toEqual([]);
  expect(lines.at(-1)).toEqual({
    message: 'Changed settings take effect at the next start of the program',
    fields: { names: ['chroot', 'zookeeper-timeout', 'webapp'] },
  });
});

it('a daemon logs the names that a change adds, removes and modifies', async () => {
  const labels = '\nlabels: [{name: a}, {name: b}]\ndiskimages: [{name: noble}]';
  const changed = '\nlabels: [{name: b, min-ready: 1}, {name: c}]\ndiskimages: [{name: noble}]';
  await change(SERVERS + labels, SERVERS + changed);
  expect(lines).toEqual([{ message: 'Applying the changed configuration', fields: { labels: ['+c', '-a', 'b'] } }]);
});

it('a daemon answers each requested reload with a line, also without a change', async () => {
  const watcher = await change(SERVERS, SERVERS);
  expect(lines.map(({ message }) => message)).toEqual(['The configuration was read again, and has not changed']);
  writeFileSync(join(folder, 'nodepool.yaml'), 'labels: 5');
  await watcher.reload();
  await watcher.reload();
  expect(lines.slice(1).map(({ message }) => message)).toEqual([
    'The changed configuration is refused; the previous one stays in force',
    'The configuration was read again, and is still refused; the previous one stays in force',
  ]);
});

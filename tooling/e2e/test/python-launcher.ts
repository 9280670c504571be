/** Launchers of the Python Nodepool, whose source `NODEPOOL_PYTHON` names. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Program, type ZooKeeperAddress } from '@nodepool/harness';

export const PYTHON_SOURCE = process.env['NODEPOOL_PYTHON'];

/** Starts a Python launcher with its default intervals. */
const PROGRAM = `
import logging, signal, sys, threading
logging.basicConfig(level=logging.INFO, format='%(asctime)s %(levelname)s %(name)s: %(message)s')
import nodepool.launcher
pool = nodepool.launcher.NodePool(None, sys.argv[1])
pool.start()
threading.Event().wait()
`;

export interface PythonLauncher {
  readonly name: string;
  /** Folder of the configuration. */
  readonly folder: string;
  /** Folder of the log. */
  readonly logs: string;
  /** With TLS, which the Python Nodepool requires. */
  readonly zooKeeper: ZooKeeperAddress;
  readonly labels: readonly string[];
  readonly providers: readonly object[];
}

export function startPythonLauncher(launcher: PythonLauncher): Promise<Program> {
  const { name, folder, logs, zooKeeper, labels, providers } = launcher;
  const [host = '', zkPort = ''] = zooKeeper.servers.split(':');
  const config = {
    'zookeeper-servers': [{ host, port: Number(zkPort) }],
    'zookeeper-tls': zooKeeper.tls,
    labels: labels.map((each) => ({ name: each })),
    providers,
  };
  mkdirSync(join(folder, name), { recursive: true });
  const file = join(folder, name, 'nodepool.yaml');
  writeFileSync(file, JSON.stringify(config));
  const clouds = join(folder, name, 'clouds.yaml');
  const auth = { auth_url: 'http://127.0.0.1:1', username: 'u', password: 'p', project_name: 'p' };
  writeFileSync(clouds, JSON.stringify({ clouds: { fake: { auth } } }));
  return Program.start({
    name,
    command: '/usr/bin/python3',
    args: ['-c', PROGRAM, file],
    env: { PYTHONPATH: PYTHON_SOURCE ?? '', PBR_VERSION: '11.0.0', OS_CLIENT_CONFIG_FILE: clouds },
    logFile: join(logs, `${name}.log`),
  });
}

/** Returns a provider of the Python Nodepool's driver for tests, whose nodes exist only in its memory. */
export function fakeCloud(labels: readonly string[]): object {
  const all = labels.map((name) => ({
    ...{ name, 'cloud-image': 'Fake Precise', 'min-ram': 8192, 'flavor-name': 'Fake' },
  }));
  const pool = { name: 'main', 'max-servers': 20, 'host-key-checking': false, labels: all };
  const cloud = { name: 'theirs', driver: 'fake', cloud: 'fake', 'region-name': 'r', rate: 0.001 };
  return { ...cloud, 'cloud-images': [{ name: 'Fake Precise' }], pools: [pool] };
}

/** The process of a service: its endpoint, its settings, and its stop. */

import { EventEmitter, once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { gauge } from '@nodepool/core';
import { VirtualClock } from '@nodepool/core/testing';
import {
  runService,
  SettingsError,
  statusEndpoint,
  superviseTasks,
  type Service,
  type StatusPortFlags,
} from '@nodepool/daemon';
import { SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';
import type { DaemonSignal } from '../src/process/process-setup.js';

const PROBLEMS = gauge<never>('test_settings_problems', [], 'Number of problems in the refused settings.');

let folder: string;
let settings: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'service-'));
  settings = join(folder, 'settings.txt');
  writeFileSync(settings, 'one');
  writeFileSync(join(folder, 'nodepool.yaml'), 'zookeeper-servers: [{host: zk1}]');
  writeFileSync(join(folder, 'logging.yaml'), 'version: 1');
});
afterEach(() => rmSync(folder, { recursive: true }));

/** A running program whose settings are the text of a file. */
class Program {
  readonly events: string[] = [];
  /** Emits `change` after each reading of the settings. */
  readonly settings = new EventEmitter();
  readonly errors: string[] = [];
  ready = false;
  readonly code: Promise<number>;
  readonly started: Promise<void>;
  readonly zooKeeper = new SimulatedZooKeeperServer({ clock: new VirtualClock() }).connect({ sessionTimeoutMs: 4000 });
  private signal: (signal: DaemonSignal) => void = () => undefined;

  constructor(port?: number) {
    const flags: StatusPortFlags = {
      statusAddress: '127.0.0.1',
      ...(port === undefined ? {} : { statusPort: port }),
    };
    const config = join(folder, 'nodepool.yaml');
    const logging = join(folder, 'logging.yaml');
    let hasStarted = (): void => undefined;
    this.started = new Promise((resolve) => {
      hasStarted = resolve;
    });
    this.code = runService<string>({
      name: 'nodepool-test',
      options: { config, secure: undefined, logging, debug: false, pidFile: undefined },
      signals: { deliverTo: (receiver) => (this.signal = receiver) },
      stopMessage: 'Stopping',
      printError: (text) => void this.errors.push(text),
      connect: () => Promise.resolve(this.zooKeeper),
      webEndpoint: () => statusEndpoint(flags),
      source: {
        read: async () => {
          const text = await readFile(settings, 'utf8');
          if (text === '') throw new SettingsError(settings, ['it is empty']);
          return text;
        },
        files: () => [settings],
        problems: PROBLEMS,
        describe: (text) => ({ text }),
      },
      create: ({ zooKeeper, clock, log }, live): Service => {
        this.events.push(`created with ${live.current}`);
        const isReady = (): boolean => this.ready;
        return {
          store: { zooKeeper, complete: true, nodes: { size: 0 }, requests: { size: 0 } },
          tasks: superviseTasks(clock, log),
          get ready() {
            return isReady();
          },
          start: () => {
            live.onChange((text) => this.settings.emit('change', text));
            hasStarted();
          },
          stop: async () => {
            this.events.push(`stopped while ${zooKeeper.state}`);
          },
          dump: () => this.events.push('dumped'),
        };
      },
    });
  }

  send(signal: DaemonSignal): void {
    this.signal(signal);
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

it('a service serves metrics and probes at its status port until it stops', async () => {
  const port = await freePort();
  const program = new Program(port);
  await program.started;
  const get = async (path: string): Promise<readonly [number, string]> => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`);
    return [answer.status, await answer.text()];
  };
  expect(await get('/live')).toEqual([200, 'OK']);
  expect(await get('/ready')).toEqual([503, 'not ready']);
  program.ready = true;
  expect(await get('/ready')).toEqual([200, 'OK']);
  expect((await get('/metrics'))[1]).toContain('test_settings_problems 0');
  program.send('SIGTERM');
  expect(await program.code).toBe(0);
  await expect(get('/live')).rejects.toThrow('fetch failed');
  expect(program.events.at(-1)).toBe('stopped while connected');
  expect(program.zooKeeper.state).toBe('closed');
});

it('a service reads its settings again at SIGHUP, and reports its work at SIGUSR2', async () => {
  const program = new Program();
  expect(await once(program.settings, 'change')).toEqual(['one']);
  program.send('SIGUSR2');
  expect(program.events).toEqual(['created with one', 'dumped']);
  const read = once(program.settings, 'change');
  program.send('SIGHUP');
  expect(await read).toEqual(['one']);
  program.send('SIGTERM');
  expect(await program.code).toBe(0);
});

it('a service with unusable settings does not start', async () => {
  writeFileSync(settings, '');
  const program = new Program();
  expect(await program.code).toBe(1);
  expect(program.errors.join('')).toBe(`nodepool-test: the settings ${settings} cannot be used:\n  it is empty\n`);
  expect(program.events).toEqual([]);
});

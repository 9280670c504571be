/** A site as operators have it: a folder with installed packages, a configuration, and a launcher. */

import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { answerText } from '@nodepool/core';
import { freePorts } from '@nodepool/dev-zookeeper';
import { labelsOffered, noNodesLeft, Program, registeredPools } from '@nodepool/harness';
import { openRequestor } from '@nodepool/requestor';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { run, type CommandOptions } from '../command.js';
import { untilAnswered } from './probe.js';

export type PackageManager = 'npm' | 'pnpm';

const START_TIMEOUT_MS = 60_000;
const REQUEST_TIMEOUT_MS = 60_000;
const COMMAND_TIMEOUT_MS = 60_000;

/** ZooKeeper of the launchers of all sites. */
export interface SharedZooKeeper {
  /** `host:port` */
  readonly servers: string;
  readonly zooKeeper: ZooKeeper;
}

/** A driver in the output of `nodepool drivers`. */
export interface ListedDriver {
  readonly name: string;
  readonly version: string | null;
  readonly error: string | null;
}

export class Site {
  /** Port of the launcher's web endpoint; it changes at every start. */
  private port = 0;
  private program: Program | undefined;

  constructor(
    readonly folder: string,
    readonly manager: PackageManager,
    private readonly sharedZooKeeper: SharedZooKeeper,
    private readonly env: Readonly<Record<string, string>>,
  ) {}

  /** Creates the folder with a package.json of the given content. */
  async create(manifest: Readonly<Record<string, unknown>> = {}): Promise<void> {
    await mkdir(this.folder, { recursive: true });
    await this.write('package.json', { name: 'site', version: '1.0.0', private: true, ...manifest });
  }

  /** Writes a file of the site; values are written as JSON, which is also YAML. */
  async write(name: string, content: string | object): Promise<void> {
    const text = typeof content === 'string' ? content : `${JSON.stringify(content, undefined, 2)}\n`;
    await writeFile(join(this.folder, name), text);
  }

  /** Installs additional packages; without arguments, those in package.json. */
  async install(...specifiers: readonly string[]): Promise<void> {
    const command = specifiers.length === 0 ? 'install' : this.manager === 'npm' ? 'install' : 'add';
    await this.run(this.manager, [command, ...specifiers]);
  }

  /** Runs a command in the folder with the rehearsal's registry and resolves with its output. */
  async run(command: string, args: readonly string[], options: Partial<CommandOptions> = {}): Promise<string> {
    return await run(command, args, { cwd: this.folder, env: this.env, ...options });
  }

  /** Runs an installed program. */
  async runInstalled(program: string, ...args: readonly string[]): Promise<string> {
    return await this.run(this.installed(program), args, { timeoutMs: COMMAND_TIMEOUT_MS });
  }

  /** Returns the drivers that the command line lists. */
  async drivers(config: string): Promise<readonly ListedDriver[]> {
    const output = await this.runInstalled('nodepool', '-c', join(this.folder, config), 'drivers', '--format', 'json');
    return JSON.parse(output) as readonly ListedDriver[];
  }

  /** Starts the launcher with a configuration that `make` returns. Resolves when it offers the labels. */
  async start(labels: readonly string[], config: string, make: (port: number) => string | object): Promise<void> {
    const [port = 0] = await freePorts(1);
    this.port = port;
    await this.write(config, make(port));
    const before = await registeredPools(this.sharedZooKeeper.zooKeeper);
    this.program = await Program.start({
      name: `launcher in ${this.folder}`,
      command: this.installed('nodepool-launcher'),
      args: ['-c', join(this.folder, config)],
      logFile: join(this.folder, 'launcher.log'),
      cwd: this.folder,
    });
    await this.launcher.while('offers its labels', START_TIMEOUT_MS, (signal) =>
      labelsOffered(this.sharedZooKeeper.zooKeeper, labels, signal, before),
    );
  }

  /** Requests nodes, uses and releases them, and waits for their deletion. Rejects if the request fails. */
  async request(labels: readonly string[]): Promise<void> {
    const { zooKeeper } = this.sharedZooKeeper;
    const requestor = openRequestor(zooKeeper, { name: 'rehearsal' });
    try {
      await this.launcher.while('fulfils a request', REQUEST_TIMEOUT_MS, async (signal) => {
        const lease = await requestor.acquire({ labels }, { signal });
        await lease.return();
        await noNodesLeft(zooKeeper, signal);
      });
    } finally {
      await requestor.close();
    }
  }

  /** Returns the launcher's Prometheus metrics. */
  async metrics(signal: AbortSignal): Promise<string> {
    const answer = await fetch(`http://127.0.0.1:${this.port}/metrics`, { signal });
    return await answerText(answer.body, { signal });
  }

  /** Starts another installed program, waits until it serves `path` at the port, and stops it. */
  async tryProgram(program: string, args: readonly string[], probe: string): Promise<void> {
    const started = await Program.start({
      name: `${program} in ${this.folder}`,
      command: this.installed(program),
      args,
      logFile: join(this.folder, `${program}.log`),
      cwd: this.folder,
    });
    try {
      await started.while(`answers at ${probe}`, START_TIMEOUT_MS, (signal) => untilAnswered(probe, signal));
    } finally {
      await started.stop();
    }
    if (started.exit?.code !== 0) throw new Error(`${started.name} did not end cleanly\n${started.logTail()}`);
  }

  /** Stops the launcher. Idempotent; rejects if it does not exit cleanly. */
  async stop(): Promise<void> {
    const { program } = this;
    this.program = undefined;
    const exit = await program?.stop();
    if (program !== undefined && exit?.code !== 0) {
      throw new Error(`${program.name} ended with ${exit?.signal ?? exit?.code ?? 'nothing'}\n${program.logTail()}`);
    }
  }

  private installed(program: string): string {
    const path = join(this.folder, 'node_modules', '.bin', program);
    if (!existsSync(path)) throw new Error(`${this.manager} has installed no program ${program} in ${this.folder}`);
    return path;
  }

  private get launcher(): Program {
    if (this.program === undefined) throw new Error(`no launcher runs in ${this.folder}`);
    return this.program;
  }
}

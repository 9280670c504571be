/** A site that runs for long: three ZooKeeper servers, three launchers, and one example cloud for all of them. */

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts, startZooKeeper, type RunningZooKeeper } from '@nodepool/dev-zookeeper';
import { exampleConfig, labelsOffered, programPath, startLauncher, Program } from '@nodepool/harness';
import { sleep, systemClock } from '@nodepool/core';
import { connect, type ZooKeeper } from '@nodepool/zookeeper';
import type { Sample } from './probe.js';

export const SIZE = 3;
export const LABEL = 'soak';
const SAMPLE_POLL_MS = 100;
/**
 * V8 optimizes functions for an hour, and each sample collects garbage, so that it would discard the bytecode of
 * functions that run once a minute. These changes of the code would hide a slow growth of the launcher's objects.
 */
const STEADY_CODE = ['--no-opt', '--no-flush-bytecode'];
/** Time limit of a server's start; it must not depend on the speed of the machine. */
const SERVER_START_MS = 600_000;

export class SoakSite {
  private readonly launchers: Program[] = [];

  private constructor(
    readonly folder: string,
    readonly servers: RunningZooKeeper,
    readonly zooKeeper: ZooKeeper,
    private readonly cloud: Program,
    private readonly ports: readonly number[],
  ) {}

  static async start(signal: AbortSignal): Promise<SoakSite> {
    const folder = mkdtempSync(join(tmpdir(), 'nodepool-soak-'));
    const servers = await startZooKeeper({
      ensembleSize: SIZE,
      javaHeap: '512m',
      optimized: true,
      startTimeoutMs: SERVER_START_MS,
    });
    const zooKeeper = connect({ servers: servers.servers });
    const ports = await freePorts(SIZE + 1);
    const cloud = await Program.start({
      name: 'cloud',
      command: process.execPath,
      args: [programPath('nodepool-example-cloud'), '--port', String(ports[SIZE])],
      logFile: join(folder, 'cloud.log'),
      cwd: folder,
    });
    const site = new SoakSite(folder, servers, zooKeeper, cloud, ports);
    for (let index = 0; index < SIZE; index += 1) await site.startLauncher(index);
    await labelsOffered(zooKeeper, [LABEL], signal);
    return site;
  }

  async startLauncher(index: number): Promise<void> {
    const endpoint = `http://127.0.0.1:${this.ports[SIZE] ?? 0}`;
    this.launchers[index] = await startLauncher({
      name: `launcher-${index}`,
      folder: join(this.folder, `launcher-${index}`),
      config: exampleConfig({
        zooKeeper: { servers: this.servers.servers },
        webappPort: this.ports[index] ?? 0,
        labels: [LABEL],
        providers: [{ endpoint }],
      }),
      nodeArgs: [...STEADY_CODE, '--require', join(__dirname, 'probe.js')],
      env: { NODEPOOL_SOAK_FILE: this.samplesFile(index) },
    });
  }

  /** Stops a launcher as a service manager does, and starts it again. */
  async restartLauncher(index: number): Promise<void> {
    const exit = await this.launchers[index]?.stop();
    if (exit?.code !== 0) throw new Error(`launcher ${index} did not stop in order: ${JSON.stringify(exit)}`);
    await this.startLauncher(index);
  }

  async restartServer(index: number): Promise<void> {
    await this.servers.kill('SIGTERM', index);
    await this.servers.restart(index);
  }

  /** Throws if a launcher or the cloud has ended by itself. */
  check(): void {
    for (const program of [this.cloud, ...this.launchers]) {
      if (program.exit !== undefined) throw new Error(`${program.name} has ended\n${program.logTail()}`);
    }
  }

  /** Asks every launcher for a sample, and resolves when all have written it. */
  async sample(signal: AbortSignal): Promise<void> {
    const wanted = this.launchers.map((_, index) => this.samples(index).length + 1);
    for (const launcher of this.launchers) launcher.signal('SIGWINCH');
    while (wanted.some((count, index) => this.samples(index).length < count)) {
      this.check();
      await sleep(systemClock, SAMPLE_POLL_MS, signal);
    }
  }

  samples(index: number): Sample[] {
    const file = this.samplesFile(index);
    if (!existsSync(file)) return [];
    const lines = readFileSync(file, 'utf8').split('\n');
    return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Sample);
  }

  /** Returns the number of watches in all servers. */
  async watches(): Promise<number> {
    const answers = await Promise.all(
      Array.from({ length: SIZE }, (_, index) => this.servers.fourLetterWord('mntr', index)),
    );
    return answers.reduce((sum, answer) => sum + Number(/^zk_watch_count\s+(\d+)$/m.exec(answer)?.[1] ?? NaN), 0);
  }

  async stop(): Promise<void> {
    await Promise.all(this.launchers.map((launcher) => launcher.stop()));
    await this.cloud.stop();
    await this.zooKeeper.close();
    await this.servers.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  private samplesFile(index: number): string {
    return join(this.folder, `samples-${index}.jsonl`);
  }
}

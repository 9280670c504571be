/** A gateway as a process that can be killed and started again at the same address. */

import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePorts } from '@nodepool/dev-zookeeper';
import { Program, programPath, zooKeeperServers } from '@nodepool/harness';
import { LeaseClient } from '@nodepool/requestor/http';
import { sleep, systemClock } from '@nodepool/zookeeper';
import type { Site } from './site.js';

const TOKEN = 'token-of-the-end-to-end-tests-0123456789';
const START_DEADLINE_MS = 120_000;
const LOOK_MS = 50;

export class GatewayProcess {
  private program: Program | undefined;
  private starts = 0;

  private constructor(
    private readonly folder: string,
    readonly url: string,
  ) {}

  /** Starts a gateway with one token, which may use all labels. Its folder is in that of the site. */
  static async start(site: Site): Promise<GatewayProcess> {
    const folder = join(site.folder, 'gateway');
    mkdirSync(folder, { recursive: true });
    const [port = 0] = await freePorts(1);
    const config = { 'zookeeper-servers': zooKeeperServers(site.address.servers), labels: [], providers: [] };
    const token = {
      name: 'test',
      sha256: createHash('sha256').update(TOKEN).digest('hex'),
      tenant: 't',
      labels: ['*'],
    };
    const files = {
      'nodepool.yaml': config,
      'gateway.yaml': { listen: { port }, tokens: 'tokens.yaml' },
      'tokens.yaml': { tokens: [token] },
    };
    for (const [name, value] of Object.entries(files)) writeFileSync(join(folder, name), JSON.stringify(value));
    writeFileSync(join(folder, 'token'), TOKEN);
    const gateway = new GatewayProcess(folder, `http://127.0.0.1:${port}`);
    await gateway.restart();
    return gateway;
  }

  /** Variables for the clients. */
  get env(): { readonly NODEPOOL_GATEWAY: string; readonly NODEPOOL_TOKEN_FILE: string } {
    return { NODEPOOL_GATEWAY: this.url, NODEPOOL_TOKEN_FILE: join(this.folder, 'token') };
  }

  get client(): LeaseClient {
    return new LeaseClient({ url: this.url, token: TOKEN });
  }

  async kill(): Promise<void> {
    await this.program?.kill();
    this.program = undefined;
  }

  /** Kills the gateway and starts another one. Resolves once it is ready. */
  async restart(): Promise<void> {
    await this.kill();
    this.starts += 1;
    const program = await Program.start({
      name: `gateway ${this.starts}`,
      command: process.execPath,
      args: [programPath('nodepool-gateway'), '-c', join(this.folder, 'nodepool.yaml'), '-g', this.settingsFile],
      logFile: join(this.folder, 'gateway.log'),
    });
    this.program = program;
    await program.while('is ready', START_DEADLINE_MS, async (signal) => {
      while ((await fetch(`${this.url}/ready`, { signal }).catch(() => undefined))?.ok !== true) {
        await sleep(systemClock, LOOK_MS, signal);
      }
    });
  }

  private get settingsFile(): string {
    return join(this.folder, 'gateway.yaml');
  }
}

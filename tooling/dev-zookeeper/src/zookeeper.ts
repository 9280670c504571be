/** Starts real ZooKeeper servers, alone or as an ensemble, for development and tests. */

import { constants } from 'node:fs';
import { access, mkdtemp, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeCertificates, type Certificates } from './certificates.js';
import { freePorts } from './ports.js';
import { ServerProcess } from './server-process.js';

export interface StartOptions {
  /** Number of servers. Default 1; an ensemble needs 3 or more. */
  readonly ensembleSize?: number;
  /** Also listens for TLS, and requires client certificates. Default false. */
  readonly tls?: boolean;
  /** Milliseconds of a tick. Session timeouts are limited to 2 to 20 ticks. Default 2000. */
  readonly tickTime?: number;
  /** Heap size, as in `java -Xmx`. Default `384m`. */
  readonly javaHeap?: string;
  /** Enables Java's optimizing compiler, whose work only a long run repays. Default false. */
  readonly optimized?: boolean;
  /** Further options of java, e.g. `-Dreadonlymode.enabled=true`, which has no line in zoo.cfg. */
  readonly javaOptions?: readonly string[];
  /**
   * Starts the servers in new sessions, which an interrupt from the terminal does not reach. Linux distributes the
   * processors to sessions first (autogroups of sched(7)). Default true.
   */
  readonly ownSession?: boolean;
  /** Folder for the data. Default: a new one in /dev/shm if there is room, else in the temporary folder. */
  readonly parentFolder?: string;
  /** Further lines of zoo.cfg. A key that ZooKeeper does not know becomes the Java property `zookeeper.<key>`. */
  readonly settings?: Readonly<Record<string, string | number>>;
  /** Time limit for the servers to start, milliseconds. Default 120000. */
  readonly startTimeoutMs?: number;
}

/** Paths of the PEM files that a client needs. */
export interface ClientTlsFiles {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** Running servers. Indexes count from 0. */
export interface RunningZooKeeper {
  /** `127.0.0.1:port,…` without TLS. */
  readonly servers: string;
  /** `localhost:port,…` with TLS, if enabled. */
  readonly tlsServers: string | undefined;
  readonly tls: ClientTlsFiles | undefined;
  /** Stops all servers and deletes their data. Idempotent. */
  stop(): Promise<void>;
  /** Ends one server with a signal (default `SIGKILL`) and keeps its data. Resolves once the server has ended. */
  kill(signal?: NodeJS.Signals, index?: number): Promise<void>;
  /** Restarts a killed server with its data. Resolves once it serves. */
  restart(index?: number): Promise<void>;
  /** Suspends a server's process, as if its machine hung. */
  pause(index?: number): Promise<void>;
  continue(index?: number): Promise<void>;
  /** Resolves with the answer to a four-letter word, e.g. `srvr`, `mntr`, `cons`, `dump`. */
  fourLetterWord(word: string, index?: number): Promise<string>;
  /** Resolves with the index of the leader of an ensemble, or undefined if there is none. */
  leader(): Promise<number | undefined>;
}

const MIN_FREE_BYTES = 1024 ** 3;
const START_ATTEMPTS = 3;

export async function startZooKeeper(options: StartOptions = {}): Promise<RunningZooKeeper> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await Ensemble.start(options);
    } catch (error) {
      // Another process bound a port between the check and the server's bind.
      const portTaken = error instanceof Error && error.message.includes('BindException');
      if (!portTaken || attempt === START_ATTEMPTS) throw error;
    }
  }
}

class Ensemble implements RunningZooKeeper {
  readonly servers: string;
  readonly tlsServers: string | undefined;
  readonly tls: ClientTlsFiles | undefined;

  private constructor(
    private readonly folder: string,
    private readonly processes: readonly ServerProcess[],
    private readonly startTimeoutMs: number,
    tls: { readonly ports: readonly number[]; readonly certificates: Certificates } | undefined,
  ) {
    this.servers = processes.map((server) => `127.0.0.1:${server.clientPort}`).join(',');
    if (tls !== undefined) {
      this.tlsServers = tls.ports.map((port) => `localhost:${port}`).join(',');
      const { ca, clientCert, clientKey } = tls.certificates;
      this.tls = { ca, cert: clientCert, key: clientKey };
    }
  }

  static async start(options: StartOptions): Promise<Ensemble> {
    const size = options.ensembleSize ?? 1;
    const folder = await mkdtemp(join(options.parentFolder ?? (await roomyFolder()), 'zookeeper-'));
    try {
      const ports = await freePorts(size * 4);
      const portsOf = (kind: number): number[] => ports.slice(kind * size, (kind + 1) * size);
      const clientPorts = portsOf(0);
      const tls =
        options.tls === true
          ? { ports: portsOf(1), certificates: await makeCertificates(join(folder, 'tls')) }
          : undefined;
      const peers = size === 1 ? {} : peerSettings(portsOf(2), portsOf(3));
      const processes = await Promise.all(
        clientPorts.map((clientPort, index) =>
          ServerProcess.prepare({
            folder: join(folder, `server-${index + 1}`),
            baseFolder: folder,
            id: index + 1,
            clientPort,
            settings: {
              ...baseSettings(options.tickTime ?? 2000),
              ...peers,
              ...(tls === undefined ? {} : tlsSettings(tls.ports[index] ?? 0, tls.certificates)),
              ...options.settings,
            },
            javaHeap: options.javaHeap ?? '384m',
            ownSession: options.ownSession ?? true,
            javaOptions: [
              ...(options.optimized === true ? [] : ['-XX:TieredStopAtLevel=1']),
              ...(options.javaOptions ?? []),
            ],
          }),
        ),
      );
      const ensemble = new Ensemble(folder, processes, options.startTimeoutMs ?? 120_000, tls);
      try {
        await ensemble.startAll();
      } catch (error) {
        await ensemble.stop();
        throw error;
      }
      return ensemble;
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.processes.map((server) => server.signal('SIGKILL')));
    await rm(this.folder, { recursive: true, force: true });
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL', index = 0): Promise<void> {
    await this.server(index).signal(signal);
  }

  async restart(index = 0): Promise<void> {
    const server = this.server(index);
    await server.start();
    await server.ready(performance.now() + this.startTimeoutMs);
  }

  async pause(index = 0): Promise<void> {
    await this.server(index).signal('SIGSTOP');
  }

  async continue(index = 0): Promise<void> {
    await this.server(index).signal('SIGCONT');
  }

  fourLetterWord(word: string, index = 0): Promise<string> {
    return this.server(index).fourLetterWord(word);
  }

  async leader(): Promise<number | undefined> {
    const answers = await Promise.all(
      this.processes.map((server) => server.fourLetterWord('srvr').catch(() => 'it does not run, or hangs')),
    );
    const index = answers.findIndex((answer) => answer.includes('Mode: leader'));
    return index < 0 ? undefined : index;
  }

  private async startAll(): Promise<void> {
    const deadline = performance.now() + this.startTimeoutMs;
    await Promise.all(this.processes.map((server) => server.start()));
    await Promise.all(this.processes.map((server) => server.ready(deadline)));
  }

  private server(index: number): ServerProcess {
    const server = this.processes[index];
    if (server === undefined) throw new Error(`no server ${index}; there are ${this.processes.length}, counted from 0`);
    return server;
  }
}

function baseSettings(tickTime: number): Record<string, string | number> {
  return {
    tickTime,
    clientPortAddress: '127.0.0.1',
    maxClientCnxns: 0,
    'admin.enableServer': 'false',
    '4lw.commands.whitelist': '*',
    preAllocSize: 1024,
  };
}

function peerSettings(peerPorts: readonly number[], electionPorts: readonly number[]): Record<string, string | number> {
  const peers = peerPorts.map((port, index) => [
    `server.${index + 1}`,
    `127.0.0.1:${port}:${electionPorts[index] ?? 0}`,
  ]);
  return { initLimit: 20, syncLimit: 10, ...(Object.fromEntries(peers) as Record<string, string>) };
}

function tlsSettings(port: number, certificates: Certificates): Record<string, string | number> {
  return {
    serverCnxnFactory: 'org.apache.zookeeper.server.NettyServerCnxnFactory',
    secureClientPort: port,
    secureClientPortAddress: '127.0.0.1',
    'ssl.keyStore.location': certificates.serverKeyStore,
    'ssl.trustStore.location': certificates.ca,
  };
}

/** Returns a folder in memory if it has enough space, else the temporary folder. */
async function roomyFolder(): Promise<string> {
  const memory = '/dev/shm';
  try {
    await access(memory, constants.W_OK);
    const { bavail, bsize } = await statfs(memory);
    if (bavail * bsize >= MIN_FREE_BYTES) return memory;
  } catch {
    // Without such a file system, the temporary folder serves, but slower.
  }
  return tmpdir();
}

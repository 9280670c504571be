/**
 * Compares four ZooKeeper clients on one server, each in a separate process: this one, the Java client (Debian's
 * libzookeeper-java), the npm package `zookeeper` (see tooling/zookeeper-reference), and kazoo (Debian's
 * python3-kazoo). Values have 100 bytes.
 */

import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { cpus, loadavg, release, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { startZooKeeper } from '@nodepool/dev-zookeeper';
import { runCommandLine, UsageError } from '@nodepool/harness';
import { connect } from '@nodepool/zookeeper';
import { dataFolder } from './data-folder.js';
import { IN_FLIGHT, OPERATIONS, WATCH_EVENTS, type Measurement } from './zookeeper-measure.js';

const NPM_PACKAGE = join(__dirname, '../../../.tools/zookeeper-reference/node_modules/zookeeper');
const PYTHON = '/usr/bin/python3';
const JAVA_SOURCE = join(__dirname, '../src/ZooKeeperJava.java');
const JARS = ['/usr/share/java/zookeeper.jar', '/usr/share/java/slf4j-nop.jar'];
const EVENTS = 10_000;
const WRITERS = 100;
/** With one operation in flight, most time is spent waiting, so fewer operations suffice. */
const SHARE_OF_SERIAL = 0.2;

interface ComparedClient {
  readonly name: string;
  /** Reason why it is not measured. */
  readonly missing?: string;
  readonly command: (...args: readonly string[]) => readonly string[];
  /** True if it has persistent watches. */
  readonly hasEvents?: boolean;
  /** The best of all runs, by operations in flight and operation. */
  readonly best: Map<string, Measurement>;
}

/** `classes`: a folder for compiled classes. */
function comparedClients(classes: string): ComparedClient[] {
  const java = compileJava(classes) ? {} : { missing: 'not installed: apt-get install libzookeeper-java default-jdk' };
  const npm = existsSync(NPM_PACKAGE) ? {} : { missing: 'not installed: tooling/zookeeper-reference/install.sh' };
  const kazoo = hasKazoo() ? {} : { missing: 'not installed: apt-get install python3-kazoo' };
  return [
    {
      name: '@nodepool/zookeeper',
      command: (...args) => [process.execPath, join(__dirname, 'zookeeper-ours.js'), ...args],
      hasEvents: true,
      best: new Map(),
    },
    {
      name: 'Java',
      ...java,
      command: (...args) => ['java', '-cp', [classes, ...JARS].join(':'), 'ZooKeeperJava', ...args],
      hasEvents: true,
      best: new Map(),
    },
    {
      name: 'zookeeper (npm)',
      ...npm,
      command: (...args) => [process.execPath, join(__dirname, 'zookeeper-npm.js'), NPM_PACKAGE, ...args],
      best: new Map(),
    },
    {
      name: 'kazoo',
      ...kazoo,
      command: (...args) => [PYTHON, join(__dirname, '../src/zookeeper-kazoo.py'), ...args],
      best: new Map(),
    },
  ];
}

function hasKazoo(): boolean {
  try {
    execFileSync(PYTHON, ['-c', 'import kazoo'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

function compileJava(classes: string): boolean {
  if (!JARS.every((jar) => existsSync(jar))) return false;
  try {
    execFileSync('javac', ['-cp', JARS.join(':'), '-d', classes, JAVA_SOURCE], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    return true;
  } catch {
    return false;
  }
}

const HELP = `Usage: pnpm bench:zookeeper [options]

Measures this workspace's ZooKeeper client, the Java client, the npm package \`zookeeper\` and kazoo on one server.

  --data memory|disk   where ZooKeeper keeps its data: /dev/shm, or the folder for temporary files (default)
  --operations N       operations per measurement with more than one in flight (default 20000)
  --runs N             of each client, in turn; the best of them counts (default 3)
  --help               this text

Example:
  $ pnpm bench:zookeeper --data memory --runs 1
`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      data: { type: 'string', default: 'disk' },
      operations: { type: 'string', default: '20000' },
      runs: { type: 'string', default: '3' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return;
  }
  const parentFolder = dataFolder(values.data);
  const runs = positive('--runs', values.runs);
  const operations = positive('--operations', values.operations);
  const server = await startZooKeeper({
    parentFolder,
    javaHeap: '1g',
    optimized: true,
  });
  const classes = mkdtempSync(join(tmpdir(), 'zookeeper-bench-'));
  const clients = comparedClients(classes);
  try {
    for (let run = 1; run <= runs; run++) {
      // Clients alternate every few seconds, so that other load on the machine affects all of them.
      for (const inFlight of IN_FLIGHT) {
        const count = inFlight === 1 ? Math.ceil(operations * SHARE_OF_SERIAL) : operations;
        for (const client of clients) {
          if (client.missing !== undefined) continue;
          process.stderr.write(`run ${run} of ${runs}: ${inFlight} in flight, ${client.name}\n`);
          const folder = `/bench-${run}-${inFlight}-${client.name.replaceAll(/\W/g, '')}`;
          await follow(client, client.command(server.servers, folder, String(inFlight), String(count)));
        }
      }
      for (const [index, client] of clients.entries()) {
        if (client.missing !== undefined || client.hasEvents !== true) continue;
        await measureEvents(client, server.servers, `/events-${run}-${index}`);
      }
    }
  } finally {
    await server.stop();
    rmSync(classes, { recursive: true, force: true });
  }
  process.stdout.write(render(clients));
}

function positive(name: string, text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value > 0) return value;
  throw new UsageError(`${name} takes a positive whole number, not "${text}"`);
}

/** Runs a client's program and keeps the measurements that are better than earlier ones. */
async function follow(client: ComparedClient, command: readonly string[], onReady?: () => void): Promise<void> {
  const [program = '', ...args] = command;
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise<string>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve(signal ?? String(code)));
  });
  for await (const line of createInterface(child.stdout)) {
    if (line === 'ready') onReady?.();
    // Our programs print measurements as JSON; other lines are messages of libraries.
    if (line.startsWith('{')) keepBest(client, JSON.parse(line) as Measurement);
  }
  const how = await ended;
  if (how !== '0') process.stderr.write(`${client.name} ended with ${how}\n`);
}

function keepBest(client: ComparedClient, measured: Measurement): void {
  const key = keyOf(measured.inFlight, measured.operation);
  const before = client.best.get(key) ?? measured;
  client.best.set(key, {
    ...measured,
    perSecond: Math.max(before.perSecond, measured.perSecond),
    cpuPerOperation: Math.min(before.cpuPerOperation, measured.cpuPerOperation),
  });
}

/** Measures watch events of a client with persistent watches. */
async function measureEvents(client: ComparedClient, servers: string, path: string): Promise<void> {
  const zk = connect({ servers });
  await zk.create(path);
  let writing: Promise<unknown> = Promise.resolve();
  const write = async (): Promise<void> => {
    for (let count = EVENTS / WRITERS; count > 0; count--) await zk.set(path, Buffer.of(count));
  };
  await follow(client, client.command(servers, path, 'events', String(EVENTS)), () => {
    writing = Promise.all(Array.from({ length: WRITERS }, write));
  });
  await writing;
  await zk.close();
}

function keyOf(inFlight: number, operation: string): string {
  return `${inFlight} ${operation}`;
}

/** Renders a Markdown table. */
function render(clients: readonly ComparedClient[]): string {
  const head = ['in flight', 'operation', ...clients.flatMap(({ name }) => [`${name}: per second`, 'CPU µs'])];
  const rows = IN_FLIGHT.flatMap((inFlight) => OPERATIONS.map((operation) => row(clients, inFlight, operation)));
  rows.push(row(clients, WRITERS, WATCH_EVENTS));
  const [cpu] = cpus();
  const lines = [
    `${new Date().toISOString().slice(0, 10)}, Node.js ${process.version}, Linux ${release()}, ${cpus().length} × ${cpu?.model ?? '?'}, load average ${loadavg()
      .map((each) => each.toFixed(1))
      .join(' ')}`,
    '',
    ...[head, head.map((_, column) => (column === 1 ? '---' : '---:')), ...rows].map(
      (cells) => `| ${cells.join(' | ')} |`,
    ),
    ...clients.flatMap(({ name, missing }) => (missing === undefined ? [] : ['', `${name}: ${missing}`])),
  ];
  return `${lines.join('\n')}\n`;
}

function row(clients: readonly ComparedClient[], inFlight: number, operation: string): string[] {
  const cells = clients.flatMap(({ best }) => {
    const measured = best.get(keyOf(inFlight, operation));
    return measured === undefined ? ['-', '-'] : [measured.perSecond.toFixed(0), measured.cpuPerOperation.toFixed(0)];
  });
  return [String(inFlight), operation, ...cells];
}

runCommandLine(HELP, main);

/** The environment of the demonstration: ZooKeeper, a launcher, and a connection for requests and observation. */

import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { delimiter, join, relative } from 'node:path';
import { freePorts, startZooKeeper, type RunningZooKeeper } from '@nodepool/dev-zookeeper';
import {
  configFileOf,
  labelsOffered,
  programPath,
  requestorPath,
  startLauncher,
  type Narrator,
  type Program,
} from '@nodepool/harness';
import { connect, type ZooKeeper } from '@nodepool/zookeeper';

const EXAMPLE_CONFIG = join(__dirname, '..', '..', '..', 'docs', 'examples', 'nodepool.yaml');
const START_DEADLINE_MS = 60_000;

/** The requested label. */
export const LABEL = 'debian';

export class DemoEnvironment {
  private constructor(
    private readonly server: RunningZooKeeper,
    readonly zooKeeper: ZooKeeper,
    readonly launcher: Program,
    /** Folder of configurations and logs. */
    readonly folder: string,
    private readonly webappPort: number,
    /** File with the private key for logins; undefined if OpenSSH is not installed. */
    readonly identity: string | undefined,
  ) {}

  /**
   * Starts all parts and resolves once the launcher offers its labels. If it rejects, it has stopped what it started.
   */
  static async build(narrator: Narrator, interrupted: AbortSignal): Promise<DemoEnvironment> {
    const folder = mkdtempSync(join(tmpdir(), 'nodepool-demo-'));
    const undo: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
    try {
      const server = await startZooKeeper();
      undo.push(() => server.stop());
      narrator.say(`ZooKeeper serves at ${server.servers}`);
      interrupted.throwIfAborted();
      const zooKeeper = connect({ servers: server.servers });
      undo.push(() => zooKeeper.close());
      await zooKeeper.connected({ signal: interrupted, timeoutMs: START_DEADLINE_MS });
      const [webappPort = 0] = await freePorts(1);
      const identity = makeIdentity(folder);
      const config = exampleConfigText(server.servers, webappPort, identity);
      const launcher = await startLauncher({ folder, config });
      undo.push(() => launcher.stop());
      narrator.say(`nodepool-launcher runs (process ${launcher.pid}) with ${configFileOf({ folder })}`);
      await launcher.while('registers its pools', START_DEADLINE_MS, (signal) =>
        labelsOffered(zooKeeper, [LABEL], AbortSignal.any([signal, interrupted])),
      );
      narrator.say(`it offers the label ${LABEL}`);
      return new DemoEnvironment(server, zooKeeper, launcher, folder, webappPort, identity);
    } catch (error) {
      for (const step of undo.reverse()) await step();
      throw error;
    }
  }

  /** Returns addresses, and commands to paste into another terminal. */
  whereToLook(): string {
    const node = nodeCommand();
    const nodepool = `${node} ${this.nodepool.join(' ')}`;
    const run = this.run('uname', '-a')?.join(' ');
    const requestor = `${relative(process.cwd(), requestorPath())} --zookeeper ${this.server.servers}`;
    return `
Everything stays up until you press Ctrl-C. Look around:

  status page        http://127.0.0.1:${this.webappPort}/
                     and /node-list, /request-list, /label-list, /metrics, /ready, /health
  launcher's log     tail -f ${this.launcher.logFile}
  nodes              ${nodepool} list
  requests           ${nodepool} request-list
  ask for two nodes  ${nodepool} request ${LABEL} ${LABEL}
  run a command      ${run === undefined ? 'needs openssh-client and openssh-server' : `${node} ${run}`}
  ask as Zuul does   ${requestor} --labels ${LABEL} --requests 10 --parallel 10 --hold 2 --verbose
                     (with Debian's python3-kazoo)
`;
  }

  /** Returns the arguments of Node.js that run a command on a node; undefined if OpenSSH is not installed. */
  run(...command: readonly string[]): readonly string[] | undefined {
    if (this.identity === undefined) return undefined;
    return [...this.nodepool, 'run', '--label', LABEL, '--identity', this.identity, '--', ...command];
  }

  private get nodepool(): readonly string[] {
    return [relative(process.cwd(), programPath('nodepool')), '-c', configFileOf({ folder: this.folder })];
  }

  /** Resolves when interrupted. Rejects if the launcher ends before. */
  async untilInterrupted(interrupted: AbortSignal): Promise<void> {
    const interruption = new Promise<void>((resolve) => {
      if (interrupted.aborted) resolve();
      interrupted.addEventListener('abort', () => resolve(), { once: true });
    });
    const ended = this.launcher.exited.then((): never => {
      throw new Error(`the launcher ended by itself; its log ends with\n${this.launcher.logTail()}`);
    });
    await Promise.race([interruption, ended]);
    // The launcher is about to be stopped, so its end is expected.
    ended.catch(() => undefined);
  }

  /** Stops all parts and deletes their files. */
  async clear(): Promise<void> {
    await this.launcher.stop();
    await this.zooKeeper.close();
    await this.server.stop();
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** Returns the example configuration with free ports and, if there is a key, with logins of this user. */
function exampleConfigText(zooKeeperServer: string, webappPort: number, identity: string | undefined): string {
  const zooKeeperPort = zooKeeperServer.slice(zooKeeperServer.lastIndexOf(':') + 1);
  const text = replaced(
    replaced(readFileSync(EXAMPLE_CONFIG, 'utf8'), 'port: 2181', `port: ${zooKeeperPort}`),
    'port: 8005',
    `port: ${webappPort}`,
  );
  if (identity === undefined) return text;
  return replaced(
    replaced(text, 'ssh: true', `ssh: true\n      authorized-keys: ${identity}.pub`),
    'username: zuul',
    `username: ${userInfo().username}`,
  );
}

/** Returns the command of this Node.js in another terminal, whose own `node` may be too old. */
export function nodeCommand(): string {
  const own = relative(process.cwd(), process.execPath);
  return own.startsWith('.tools') ? own : 'node';
}

/** Creates a key pair. Returns undefined if OpenSSH's client or server is not installed. */
function makeIdentity(folder: string): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin'];
  const installed = (program: string): boolean => folders.some((path) => existsSync(join(path, program)));
  if (!['ssh', 'ssh-keygen', 'sshd'].every(installed)) return undefined;
  const file = join(folder, 'id_ed25519');
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'demonstration', '-f', file]);
  return file;
}

function replaced(text: string, what: string, by: string): string {
  if (!text.includes(what)) throw new Error(`${EXAMPLE_CONFIG} has no line with "${what}" to put another port into`);
  return text.replaceAll(what, by);
}

/** One ZooKeeper server: its folder, its process, and a watchdog that stops it when this process ends. */

import { spawn, type ChildProcess } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { classPath } from './installation.js';

/** Settings of one server. */
export interface ServerSetup {
  /** Folder for this server only. */
  readonly folder: string;
  /** Folder that the watchdog deletes when this process ends. */
  readonly baseFolder: string;
  /** 1, 2, … */
  readonly id: number;
  readonly clientPort: number;
  /** Lines of zoo.cfg. */
  readonly settings: Readonly<Record<string, string | number>>;
  readonly javaHeap: string;
  readonly javaOptions: readonly string[];
  readonly ownSession: boolean;
}

/**
 * Arguments: the log, the folder to delete, and the server's command. Standard input is a pipe that closes when the
 * parent ends for any reason. The server must not inherit it. An interrupt from the terminal is ignored, since the
 * folder is deleted only once the parent has ended.
 */
const WATCHDOG = `
trap '' INT
log=$1; base=$2; shift 2
exec 3<&0
"$@" </dev/null >>"$log" 2>&1 3<&- &
server=$!
echo "$server"
(read -r _ <&3; kill -KILL "$server"; rm -rf "$base") >/dev/null 2>&1 &
watchdog=$!
wait "$server"
code=$?
kill "$watchdog"
exit "$code"
`;

const LOGGING = `log4j.rootLogger=INFO, console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
`;

const PROBE_INTERVAL_MS = 25;
const PROBE_TIMEOUT_MS = 1000;
const LOG_TAIL_LINES = 25;

export class ServerProcess {
  readonly id: number;
  readonly clientPort: number;
  private child: ChildProcess | undefined;
  private javaPid: number | undefined;
  private exited: Promise<void> = Promise.resolve();

  private constructor(
    private readonly setup: ServerSetup,
    private readonly command: readonly string[],
  ) {
    this.id = setup.id;
    this.clientPort = setup.clientPort;
  }

  /** Writes the server's files, without starting it. */
  static async prepare(setup: ServerSetup): Promise<ServerProcess> {
    const dataFolder = join(setup.folder, 'data');
    await mkdir(dataFolder, { recursive: true });
    const settings = { ...setup.settings, dataDir: dataFolder, clientPort: setup.clientPort };
    const lines = Object.entries(settings).map(([key, value]) => `${key}=${value}\n`);
    const configuration = join(setup.folder, 'zoo.cfg');
    await Promise.all([
      writeFile(configuration, lines.join('')),
      writeFile(join(setup.folder, 'log4j.properties'), LOGGING),
      writeFile(join(dataFolder, 'myid'), `${setup.id}\n`),
    ]);
    return new ServerProcess(setup, [
      'java',
      `-Xmx${setup.javaHeap}`,
      '-XX:+UseSerialGC',
      '-Dzookeeper.jmx.log4j.disable=true',
      ...setup.javaOptions,
      '-cp',
      classPath(setup.folder),
      'org.apache.zookeeper.server.quorum.QuorumPeerMain',
      configuration,
    ]);
  }

  /** Starts the process. Resolves before the server is ready; see `ready`. */
  async start(): Promise<void> {
    if (this.child !== undefined) throw new Error(`server ${this.id} runs already`);
    const child = spawn('/bin/sh', ['-c', WATCHDOG, 'sh', this.logFile, this.setup.baseFolder, ...this.command], {
      detached: this.setup.ownSession,
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    this.child = child;
    this.exited = new Promise((resolve) => {
      child.once('close', () => {
        this.child = undefined;
        this.javaPid = undefined;
        resolve();
      });
    });
    this.javaPid = await firstNumber(child);
  }

  /** Sends a signal to the server; `SIGSTOP`, `SIGKILL`, `SIGTERM` and the like resolve once it has taken effect. */
  async signal(name: NodeJS.Signals): Promise<void> {
    const { javaPid } = this;
    if (javaPid === undefined) return;
    process.kill(javaPid, name);
    // A thread that runs when the signal is sent can still answer a request.
    if (name === 'SIGSTOP') while (this.javaPid === javaPid && !(await isStopped(javaPid))) await delay(1);
    else if (name !== 'SIGCONT') await this.exited;
  }

  /** Resolves with the server's answer to a four-letter word. */
  fourLetterWord(word: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connect(this.clientPort, '127.0.0.1', () => socket.end(word));
      let answer = '';
      socket.setEncoding('utf8');
      socket.setTimeout(PROBE_TIMEOUT_MS, () => socket.destroy(new Error(`server ${this.id} does not answer ${word}`)));
      socket.on('data', (text: string) => (answer += text));
      socket.once('error', reject);
      socket.once('close', () => resolve(answer));
    });
  }

  /** Resolves once the server serves clients. Rejects with the end of its log if it ends or takes too long. */
  async ready(deadline: number): Promise<void> {
    let lastProblem: unknown;
    // Polls, because the server sends no event when it becomes ready.
    while (performance.now() < deadline && this.child !== undefined) {
      try {
        const answer = await this.fourLetterWord('srvr');
        if (/^Mode: /m.test(answer)) return;
        lastProblem = new Error(`its answer is: ${answer.trim()}`);
      } catch (error) {
        lastProblem = error;
      }
      await delay(PROBE_INTERVAL_MS);
    }
    const what = this.child === undefined ? 'ended' : 'did not become ready in time';
    throw new Error(`ZooKeeper server ${this.id} ${what}; its log ends with:\n${await this.logTail()}`, {
      cause: lastProblem,
    });
  }

  async logTail(): Promise<string> {
    const text = await readFile(this.logFile, 'utf8').catch((error: unknown) => `(no log: ${String(error)})`);
    return text.trimEnd().split('\n').slice(-LOG_TAIL_LINES).join('\n');
  }

  private get logFile(): string {
    return join(this.setup.folder, 'server.log');
  }
}

/** Resolves with the number that the child prints first, or undefined if it ends before. */
function firstNumber(child: ChildProcess): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    let text = '';
    child.once('error', reject);
    child.once('close', () => resolve(undefined));
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      if (text.includes('\n')) resolve(Number.parseInt(text, 10));
    });
  });
}

/** Returns true if all threads of the process have stopped. */
async function isStopped(pid: number): Promise<boolean> {
  const threads = await readdir(`/proc/${pid}/task`);
  const states = await Promise.all(threads.map((thread) => stateOfThread(pid, thread)));
  return states.every((state) => state === 'T' || state === undefined);
}

/** Returns the kernel's letter for the state of a thread, e.g. `T` for stopped; undefined if the thread has ended. */
async function stateOfThread(pid: number, thread: string): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/task/${thread}/stat`, 'utf8').catch(() => '');
  // The name of the thread is in parentheses and can contain spaces.
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[0] || undefined;
}

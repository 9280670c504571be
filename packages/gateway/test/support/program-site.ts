/** A program of the command line package with a gateway: its folder, a stand-in for ssh, and its processes. */

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals';
import type { LeaseDocument } from '@nodepool/requestor/http';
import { TOKENS, until, World, type RunningGateway } from './world.js';

/** An ssh that runs the command line here in a session of its own, as sshd does on a node. */
export const LOCAL_SSH = `#!/bin/sh
for last; do :; done
exec setsid --wait sh -c "$last"
`;

/** An ssh that does not reach its node. */
export const BROKEN_SSH = '#!/bin/sh\nexit 255\n';

export interface ProgramStart {
  readonly env: Readonly<Record<string, string>>;
  /** The standard input. Default: none. */
  readonly input?: string;
}

export class ProgramSite {
  /** The file of the program. */
  readonly program: string;
  private readonly running: ProgramRun[] = [];
  private started: { readonly world: World; readonly gateway: RunningGateway } | undefined;
  private currentFolder = '';

  /** Starts and stops with the tests of the calling file. `prepare` is called before each test. */
  constructor(
    private readonly name: 'garm' | 'gitlab' | 'slurm',
    prepare: () => Promise<void> = () => Promise.resolve(),
  ) {
    this.program = join(dirname(require.resolve('@nodepool/cli/package.json')), 'dist', name, 'bin.js');
    beforeAll(() => this.start());
    beforeEach(async () => {
      await this.prepare();
      await prepare();
    });
    afterEach(() => this.cleanUp());
    afterAll(() => this.world.stop());
  }

  get world(): World {
    if (this.started === undefined) throw new Error('the site has not started');
    return this.started.world;
  }

  get gateway(): RunningGateway {
    if (this.started === undefined) throw new Error('the site has not started');
    return this.started.gateway;
  }

  /** The folder of one test, which is also the home of the program. */
  get folder(): string {
    return this.currentFolder;
  }

  /** Writes a program of the `PATH`. */
  async executable(name: string, text: string): Promise<void> {
    await writeFile(join(this.folder, name), text);
    await chmod(join(this.folder, name), 0o755);
  }

  /** Writes the token of the gateway that the program uses. */
  async useToken(token: string): Promise<void> {
    await writeFile(join(this.folder, 'token'), token);
  }

  /** Returns the text of a file of the folder; undefined if there is none. */
  textOf(name: string): string | undefined {
    const file = join(this.folder, name);
    return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  }

  /** Starts the program, which is killed after the test. */
  run(args: readonly string[], start: ProgramStart): ProgramRun {
    return this.spawn(process.execPath, [this.program, ...args], start);
  }

  /** Starts a shell, which is killed after the test. */
  shell(text: string, start: ProgramStart): ProgramRun {
    return this.spawn('sh', ['-c', text], start);
  }

  /** Returns the leases in one of the states. Default: those that have not ended. */
  async leases(...states: readonly LeaseDocument['state'][]): Promise<LeaseDocument[]> {
    const wanted: readonly LeaseDocument['state'][] = states.length === 0 ? ['waiting', 'ready'] : states;
    const found: LeaseDocument[] = [];
    for await (const lease of this.gateway.client().list()) if (wanted.includes(lease.state)) found.push(lease);
    return found;
  }

  /** Lets the launcher lose the first node of a lease. */
  async loseNode(lease: LeaseDocument | undefined): Promise<void> {
    const handle = await this.world.launcher.store.nodes.adopt(lease?.nodes[0]?.id ?? '', `lease/${lease?.id}`);
    await handle?.release({ state: 'deleting' });
  }

  private spawn(file: string, args: readonly string[], { env, ...start }: ProgramStart): ProgramRun {
    const { folder } = this;
    const all = { PATH: `${folder}:/usr/bin:/bin`, HOME: folder, TMPDIR: folder, ...env };
    const run = new ProgramRun(file, args, { ...start, env: all });
    this.running.push(run);
    return run;
  }

  private async start(): Promise<void> {
    if (!existsSync(this.program)) throw new Error('the program is not built; run `pnpm build` first');
    const world = await World.start();
    this.started = { world, gateway: await world.gateway() };
  }

  private async prepare(): Promise<void> {
    this.world.launcher.mode = 'serve';
    this.currentFolder = await mkdtemp(join(tmpdir(), `${this.name}-test-`));
    await this.useToken(TOKENS.acme);
    await this.executable('ssh', LOCAL_SSH);
  }

  private async cleanUp(): Promise<void> {
    for (const { child } of this.running.splice(0)) child.kill('SIGKILL');
    for (const { id } of await this.leases()) await this.gateway.client().release(id);
    await this.world.clean();
    // The orphans of a killed program may still write.
    await rm(this.folder, { recursive: true, maxRetries: 20 });
  }
}

/** A process, in a process group of its own. */
export class ProgramRun {
  readonly child: ChildProcess;
  /** Resolves with the exit code at the end of the process; null after a kill. */
  readonly code: Promise<number | null>;
  /** The standard output so far. */
  printed = '';
  /** The standard error so far. */
  noted = '';

  constructor(file: string, args: readonly string[], { env, input }: ProgramStart) {
    this.child = spawn(file, args, {
      env,
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      detached: true,
    });
    this.code = once(this.child, 'close').then(([code]) => code as number | null);
    this.child.stdin?.on('error', () => undefined).end(input);
    this.child.stdout?.on('data', (data: Buffer) => void (this.printed += String(data)));
    this.child.stderr?.on('data', (data: Buffer) => void (this.noted += String(data)));
  }

  /** Signals the process group, as GitLab Runner does. */
  signal(signal: NodeJS.Signals): void {
    if (this.child.exitCode === null) process.kill(-(this.child.pid ?? 0), signal);
  }

  prints(text: string): Promise<void> {
    return until(() => Promise.resolve(this.printed.includes(text)));
  }

  notes(text: string): Promise<void> {
    return until(() => Promise.resolve(this.noted.includes(text)));
  }
}

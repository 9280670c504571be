/**
 * A cluster of Slurm whose nodes are leases: munge, slurmctld, an example cloud, and a slurmd on each instance. The
 * instances share this host. Each slurmd has a process namespace of its own, which ends when its instance is deleted.
 */

import { execFile, execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { randomBytes } from 'node:crypto';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { signalIfThere } from '@nodepool/core/testing';
import { freePorts } from '@nodepool/dev-zookeeper';
import { Program, programPath } from '@nodepool/harness';
import { sleep, systemClock } from '@nodepool/zookeeper';
import { GatewayProcess } from './gateway-process.js';
import { Site, type LauncherSetup } from './site.js';

const execute = promisify(execFile);
const DAEMONS = ['/usr/sbin/slurmctld', '/usr/sbin/slurmd', '/usr/sbin/munged', '/usr/bin/sbatch'];
const LOOK_MS = 100;
const DEADLINE_MS = 120_000;
/** Limit (s) of a slurmd that a killed test leaves behind. */
const MACHINE_LIMIT_S = 3600;

/** Returns the reason why the scenario cannot run here, or undefined. */
export function slurmMissing(): string | undefined {
  const missing = DAEMONS.filter((file) => !existsSync(file));
  if (missing.length > 0) return `${missing.join(', ')} missing (Debian: slurmctld, slurmd, slurm-client, munge)`;
  return process.getuid?.() === 0 ? undefined : 'slurmd needs root';
}

/** One run of a job, as its script reports it. */
export interface JobRun {
  readonly event: 'begun' | 'done';
  readonly job: string;
  readonly restarts: number;
  readonly node: string;
}

interface Instance {
  readonly id: string;
  readonly state: string;
  readonly sshPort: number | null;
}

export class SlurmSite {
  private controller: Program | undefined;
  private munged: Program | undefined;
  private readonly over = new AbortController();
  private watching: Promise<void> = Promise.resolve();
  /** Number of slurmds that were started. */
  machines = 0;

  private constructor(
    readonly site: Site,
    readonly gateway: GatewayProcess,
    readonly folder: string,
    private readonly endpoint: string,
    private readonly setup: LauncherSetup,
    public launcher: Program,
  ) {}

  static async start(nodes: number): Promise<SlurmSite> {
    const folder = mkdtempSync(join(tmpdir(), 'nodepool-slurm-e2e-'));
    chmodSync(folder, 0o755);
    for (const name of ['state', 'spool', 'run', 'machines', 'munge']) mkdirSync(join(folder, name), { mode: 0o755 });
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(folder, 'key')]);
    const site = await Site.start({ maxSessionTimeout: 10_000 });
    const endpoint = await site.cloud(['ssh=true', `authorized-keys=${join(folder, 'key.pub')}`, 'boot-time=[0.2, 1]']);
    const setup = { providers: [{ endpoint, username: 'root', hostKeyChecking: true, maxServers: nodes + 2 }] };
    const launcher = await site.launcher(setup);
    const gateway = await GatewayProcess.start(site);
    const slurm = new SlurmSite(site, gateway, folder, endpoint, setup, launcher);
    await slurm.configure(nodes);
    await slurm.startMunge();
    await slurm.startController();
    slurm.watching = slurm.runHypervisor();
    return slurm;
  }

  async stop(): Promise<void> {
    this.over.abort();
    await this.watching;
    // The marks of started nodes, which share the folder of this host.
    for await (const { id } of this.gateway.client.list()) {
      rmSync(join('/tmp', `nodepool-slurm-${id}`), { recursive: true, force: true });
    }
    await this.controller?.kill();
    for (const machine of this.runningMachines()) this.powerOff(machine);
    await this.munged?.kill();
    await this.gateway.kill();
    await this.site.stop();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 20 });
  }

  get log(): string {
    return join(this.site.folder, 'slurm.log');
  }

  /** Runs a command of Slurm. Resolves with its output. */
  async slurm(program: string, ...args: readonly string[]): Promise<string> {
    const { stdout } = await execute(program, args, { env: { ...process.env, SLURM_CONF: this.file('slurm.conf') } });
    return stdout;
  }

  /** Submits jobs that report their begin and their end. */
  async submit(count: number, seconds: number): Promise<void> {
    const report = (event: string): string =>
      `echo "${event} \${SLURM_ARRAY_JOB_ID}_\${SLURM_ARRAY_TASK_ID} \${SLURM_RESTART_COUNT:-0} $SLURMD_NODENAME" >>${this.file('runs')}`;
    const script = [report('begun'), `sleep ${seconds}`, report('done')].join('; ');
    await this.slurm('sbatch', '-n1', '-o', '/dev/null', `--array=1-${count}`, '--requeue', '--wrap', script);
  }

  runs(): readonly JobRun[] {
    if (!existsSync(this.file('runs'))) return [];
    const lines = readFileSync(this.file('runs'), 'utf8').split('\n').slice(0, -1);
    return lines.map((line) => {
      const [event, job = '', restarts, node = ''] = line.split(' ');
      return { event: event === 'done' ? 'done' : 'begun', job, restarts: Number(restarts), node };
    });
  }

  /** Jobs that Slurm requeues wait two minutes; this ends their wait. */
  async hurry(): Promise<void> {
    const waiting = await this.slurm('squeue', '--noheader', '--array', '--states=PD', '--format=%i %r');
    for (const line of waiting.split('\n')) {
      const [job, reason] = line.trim().split(' ');
      if (job !== undefined && reason === 'BeginTime')
        await this.slurm('scontrol', 'update', `jobid=${job}`, 'starttime=now').catch(() => '');
    }
  }

  async killLauncher(): Promise<void> {
    await this.launcher.kill();
    this.launcher = await this.site.launcher(this.setup);
  }

  async restartController(): Promise<void> {
    await this.controller?.stop();
    await this.startController();
  }

  /** Kills the running programs of these kinds, and resolves with their number. */
  killPrograms(...kinds: readonly string[]): number {
    const files = readdirSync(this.file('run')).map((name) => /^program-(\w+)-(\d+)$/.exec(name));
    return files.filter((match) => {
      const [name = '', kind = '', pid = ''] = match ?? [];
      if (!kinds.includes(kind)) return false;
      rmSync(this.file('run', name), { force: true });
      // Its process id may be that of another process by now.
      return commandOf(pid).includes(programPath('nodepool-slurm')) && signalIfThere(Number(pid));
    }).length;
  }

  /** Deletes the instance of a node in the cloud, as a cloud that reclaims it. Returns false if it has none. */
  async reclaim(node: string): Promise<boolean> {
    const machine = this.runningMachines().find(
      (name) => readFileSync(this.file('machines', name, 'node'), 'utf8').trim() === node,
    );
    const instance = (await this.instances()).find(({ sshPort }) => String(sshPort) === machine);
    if (instance === undefined) return false;
    const answer = await fetch(`${this.endpoint}/v1/instances/${instance.id}`, { method: 'DELETE' });
    return answer.ok;
  }

  /** Runs `nodepool-slurm reconcile` once. Resolves with its exit code. */
  async reconcile(): Promise<number> {
    const program = await Program.start({
      ...{ name: 'reconcile', command: this.file('reconcile'), args: [], logFile: this.log },
    });
    const { code } = await program.ends(DEADLINE_MS);
    return code ?? -1;
  }

  async until(what: string, deadlineMs: number, isMet: () => Promise<boolean>): Promise<void> {
    const end = systemClock.monotonic() + deadlineMs;
    while (!(await isMet())) {
      if (systemClock.monotonic() > end) throw new Error(`not within ${deadlineMs} ms: ${what}`);
      await sleep(systemClock, LOOK_MS);
    }
  }

  async instances(): Promise<readonly Instance[]> {
    const answer = await fetch(`${this.endpoint}/v1/instances`, { signal: AbortSignal.timeout(DEADLINE_MS) });
    const { items } = (await answer.json()) as { readonly items: readonly Instance[] };
    return items.filter(({ state }) => state !== 'deleted' && state !== 'deleting');
  }

  /** Returns the names of the running slurmds: the ports of their instances. */
  runningMachines(): readonly string[] {
    return readdirSync(this.file('machines')).filter((name) => existsSync(this.file('machines', name, 'pid')));
  }

  private file(...parts: readonly string[]): string {
    return join(this.folder, ...parts);
  }

  private async configure(nodes: number): Promise<void> {
    const [controllerPort = 0, ...ports] = await freePorts(nodes + 1);
    const start = [
      `set -e; machine=${this.file('machines')}/\${SSH_CONNECTION##* }; mkdir -p "$machine"`,
      'echo "$SLURM_NODE" >"$machine/node"',
      // The slurmd of the former instance of this name may still use the port.
      `slurmd="until /usr/sbin/slurmd -D -b -N $SLURM_NODE -f ${this.file('slurm.conf')}; do sleep 0.2; done"`,
      `setsid timeout ${MACHINE_LIMIT_S} unshare --pid --fork --kill-child --mount-proc sh -c "$slurmd" >>${this.log} 2>&1 </dev/null &`,
      'echo $! >"$machine/new" && mv "$machine/new" "$machine/pid"',
    ].join('\n');
    const options = [
      '--label',
      'debian',
      '--user',
      'root',
      '--identity',
      this.file('key'),
      '--timeout',
      '60',
      '--lifetime',
      '120',
    ];
    writeFileSync(this.file('start'), start);
    const { NODEPOOL_GATEWAY: url, NODEPOOL_TOKEN_FILE: token } = this.gateway.env;
    for (const command of ['resume', 'suspend', 'recover', 'reconcile']) {
      const script = [
        '#!/bin/sh',
        `export NODEPOOL_GATEWAY=${url} NODEPOOL_TOKEN_FILE=${token} SLURM_CONF=${this.file('slurm.conf')}`,
        'export PATH=/usr/sbin:/usr/bin:/sbin:/bin TMPDIR=' + this.file('run'),
        `touch ${this.file('run')}/program-${command}-$$`,
        `exec ${process.execPath} ${programPath('nodepool-slurm')} ${options.join(' ')} --start "$(cat ${this.file('start')})" ${command} "$@" >>${this.log} 2>&1`,
      ];
      writeFileSync(this.file(command), `${script.join('\n')}\n`, { mode: 0o755 });
    }
    writeFileSync(this.file('slurm.conf'), this.slurmConf(controllerPort, ports));
  }

  private slurmConf(controllerPort: number, ports: readonly number[]): string {
    const file = (name: string): string => this.file(name);
    return [
      'ClusterName=e2e',
      `SlurmctldHost=${hostname()}(127.0.0.1)`,
      `SlurmctldPort=${controllerPort}`,
      'SlurmUser=root',
      'SlurmdUser=root',
      'AuthType=auth/munge',
      `AuthInfo=socket=${file('munge/socket')}`,
      `StateSaveLocation=${file('state')}`,
      `SlurmdSpoolDir=${file('spool')}/%n`,
      `SlurmctldPidFile=${file('run')}/slurmctld.pid`,
      `SlurmdPidFile=${file('run')}/%n.pid`,
      'ProctrackType=proctrack/linuxproc',
      'TaskPlugin=task/none',
      'MpiDefault=none',
      'MailProg=/bin/true',
      'SelectType=select/cons_tres',
      'SelectTypeParameters=CR_Core',
      'JobRequeue=1',
      'MinJobAge=3600',
      'MaxArraySize=10000',
      'SchedulerParameters=sched_interval=2',
      'SlurmdTimeout=120',
      'ReturnToService=2',
      'TreeWidth=65533',
      `ResumeProgram=${file('resume')}`,
      `SuspendProgram=${file('suspend')}`,
      `ResumeFailProgram=${file('recover')}`,
      'ResumeTimeout=90',
      'SuspendTime=4',
      'SuspendTimeout=4',
      'ResumeRate=0',
      'SuspendRate=0',
      'SlurmctldParameters=power_save_interval=1,idle_on_node_suspend',
      'PrivateData=cloud',
      ...ports.map((port, index) => `NodeName=cloud${index + 1} Port=${port} CPUs=1 State=CLOUD`),
      'PartitionName=cloud Nodes=ALL Default=YES MaxTime=60',
      '',
    ].join('\n');
  }

  private async startMunge(): Promise<void> {
    const key = this.file('munge', 'key');
    writeFileSync(key, randomBytes(128), { mode: 0o400 });
    const files = {
      key,
      socket: this.file('munge', 'socket'),
      pid: this.file('munge', 'pid'),
      log: this.file('munge', 'log'),
      seed: this.file('munge', 'seed'),
    };
    const args = [
      `--key-file=${files.key}`,
      `--socket=${files.socket}`,
      `--pid-file=${files.pid}`,
      `--log-file=${files.log}`,
      `--seed-file=${files.seed}`,
    ];
    this.munged = await Program.start({
      name: 'munged',
      command: '/usr/sbin/munged',
      args: ['--foreground', '--force', ...args],
      logFile: this.log,
    });
    await this.until('munged listens', DEADLINE_MS, () => Promise.resolve(existsSync(files.socket)));
  }

  private async startController(): Promise<void> {
    this.controller = await Program.start({
      ...{ name: 'slurmctld', command: '/usr/sbin/slurmctld', args: ['-D', '-f', this.file('slurm.conf')] },
      logFile: join(this.site.folder, 'slurmctld.log'),
    });
    await this.controller.while('answers', DEADLINE_MS, async (signal) => {
      while (!(await this.slurm('scontrol', 'ping').catch(() => '')).includes('UP'))
        await sleep(systemClock, LOOK_MS, signal);
    });
  }

  /** Ends the slurmd of each instance that no longer exists, with all of its processes. */
  private async runHypervisor(): Promise<void> {
    const seen = new Set<string>();
    while (!this.over.signal.aborted) {
      // In this order, each machine is older than the listing.
      const machines = this.runningMachines();
      const ports = new Set((await this.instances()).map(({ sshPort }) => String(sshPort)));
      for (const machine of machines) {
        if (!seen.has(machine)) this.machines += 1;
        seen.add(machine);
        if (ports.has(machine)) continue;
        this.powerOff(machine);
        seen.delete(machine);
      }
      await sleep(systemClock, LOOK_MS);
    }
  }

  private powerOff(machine: string): void {
    const pid = Number(readFileSync(this.file('machines', machine, 'pid'), 'utf8'));
    rmSync(this.file('machines', machine), { recursive: true, force: true });
    // setsid has made it the leader of a group.
    signalIfThere(-pid);
  }
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}

/** Runs podman and podman-compose with settings that work on this machine. */

import { execFile, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { sleep, systemClock } from '@nodepool/core';

/** Names of services on their network need this program; podman without it uses another kind of network. */
const NETAVARK = '/usr/lib/podman/netavark';
/** The folder exists on machines with both versions of control groups, which `crun` refuses. */
const HYBRID_CGROUPS = '/sys/fs/cgroup/unified';
/** Number of open files and of processes of a container. */
const HIGHEST_LIMIT = 4096;
const CALL_TIMEOUT_MS = 120_000;
const POLL_INTERVAL_MS = 1_000;
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;

export class Podman {
  private constructor(
    readonly env: NodeJS.ProcessEnv,
    private readonly interrupted: AbortSignal,
  ) {}

  /** Resolves with the reason if containers cannot run here. Writes its settings to `folder`. */
  static async find(folder: string, interrupted: AbortSignal): Promise<Podman | string> {
    if (process.getuid?.() !== 0) return 'it needs root, since buildah and podman share their images as one user only';
    for (const program of ['buildah', 'podman', 'podman-compose']) {
      if (!isInPath(program)) return `there is no ${program}: apt-get install buildah podman podman-compose runc`;
    }
    const settings = join(folder, 'containers.conf');
    await mkdir(folder, { recursive: true });
    await writeFile(settings, await settingsText());
    // Podman remembers the driver of its first start. It must see the images that buildah stores by the other one.
    const hasOverlay = spawnSync('buildah', ['--storage-driver', 'overlay', 'info']).status === 0;
    const driver = process.env['STORAGE_DRIVER'] ?? (hasOverlay ? 'overlay' : 'vfs');
    // Podman stores health checks in images of this format only.
    const format = 'docker';
    const env = { ...process.env, CONTAINERS_CONF: settings, BUILDAH_FORMAT: format, STORAGE_DRIVER: driver };
    return new Podman(env, interrupted);
  }

  /** Resolves with the standard output. Rejects with the output if the program fails. Interrupts stop no `cleanup`. */
  async run(
    args: readonly string[],
    {
      program = 'podman',
      cwd,
      timeoutMs = CALL_TIMEOUT_MS,
      cleanup = false,
    }: { program?: string; cwd?: string; timeoutMs?: number; cleanup?: boolean } = {},
  ): Promise<string> {
    const signal = cleanup ? undefined : this.interrupted;
    return await new Promise((resolve, reject) => {
      execFile(
        program,
        args,
        { env: this.env, cwd, timeout: timeoutMs, signal, maxBuffer: MAX_OUTPUT_BYTES },
        (error, stdout, stderr) => {
          if (error === null) resolve(stdout);
          else if (signal?.aborted === true) reject(signal.reason as Error);
          else
            reject(new Error(`${program} ${args.join(' ')}: ${error.message}\n${stdout}\n${stderr}`, { cause: error }));
        },
      );
    });
  }

  /** Resolves when `condition` resolves with a value other than undefined. Rejects with its last error in time. */
  async until<T>(what: string, timeoutMs: number, condition: () => Promise<T | undefined>): Promise<T> {
    const end = systemClock.monotonic() + timeoutMs;
    for (;;) {
      const found = await condition().catch((error: unknown) => {
        if (systemClock.monotonic() > end) throw new Error(`${what}: not within ${timeoutMs} ms`, { cause: error });
        return undefined;
      });
      if (found !== undefined) return found;
      if (systemClock.monotonic() > end) throw new Error(`${what}: not within ${timeoutMs} ms`);
      await sleep(systemClock, POLL_INTERVAL_MS, this.interrupted);
    }
  }

  /** Resolves when the health check of the image succeeds in the container. Rejects if the container ends. */
  async healthy(container: string, timeoutMs: number): Promise<void> {
    const state = await this.until(`the health check of ${container}`, timeoutMs, async () => {
      const status = (await this.run(['inspect', '--format={{.State.Status}}', container])).trim();
      if (status === 'exited') return status;
      await this.run(['healthcheck', 'run', container]);
      return 'healthy';
    });
    if (state !== 'healthy') throw new Error(`${container} has ended`);
  }
}

/** Podman's own limits can exceed those of this process, which a process without the privilege cannot raise. */
async function settingsText(): Promise<string> {
  const limits = await readFile('/proc/self/limits', 'utf8');
  const hard = (name: string): number =>
    Math.min(HIGHEST_LIMIT, Number(new RegExp(`^${name} +\\S+ +(\\d+)`, 'm').exec(limits)?.[1] ?? HIGHEST_LIMIT));
  const [files, processes] = [hard('Max open files'), hard('Max processes')];
  return [
    '[containers]',
    `default_ulimits = ["nofile=${files}:${files}", "nproc=${processes}:${processes}"]`,
    ...(existsSync(HYBRID_CGROUPS) && isInPath('runc') ? ['[engine]', 'runtime = "runc"'] : []),
    ...(existsSync(NETAVARK) ? ['[network]', 'network_backend = "netavark"'] : []),
    '',
  ].join('\n');
}

function isInPath(program: string): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => existsSync(join(folder, program)));
}

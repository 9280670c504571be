/** The processes of one build: its start in a process group of its own, and the end of all of them. */

import { spawn, type ChildProcess } from 'node:child_process';
import { Writable } from 'node:stream';
import { abortReason, reasonOf, sleep, type Clock, type Logger } from '@nodepool/core';
import type { BuildFolder } from './build-folders.js';
import type { DiskImageJob } from './disk-image-creator.js';
import type { ProcessIdentity } from './processes.js';
import { groupEnds, isGroupRunning, isRoot, isRunning, sendSignal, sendSignalAsRoot } from './processes.js';

/**
 * Time (ms) for a build to clean up after SIGTERM, to end after SIGKILL, to write its last lines after the end of its
 * leader, and to close its output. diskimage-builder needs up to 40 s after SIGTERM on a busy machine: it writes all
 * disks, unmounts, and deletes.
 */
const GRACE_MS = { term: 120_000, kill: 5000, lastLines: 5000, output: 5000 } as const;

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/**
 * Shell script that becomes the command, and leaves two processes in sessions of their own, because `sudo` ignores
 * signals from its own process group:
 *
 * - The relay passes on the output, and reads it to its end if the builder is killed: without a reader, the next line
 *   of output ends the build, and the traps that clean up after it.
 * - The guard ends the build if the other end of descriptor 3 closes without a line, which also happens if the builder
 *   is killed. Only the leader gets SIGTERM: its traps need the other processes.
 */
const GUARDED = `
record=$1
shift
cat /proc/self/mountinfo >"$record/mounts" && mkfifo "$record/output" && cat /proc/$$/stat >"$record/leader" || exit 125
setsid /bin/sh -c 'trap "" PIPE; cat; exec cat >/dev/null' <"$record/output" 2>/dev/null 3<&- &
setsid /bin/sh -c '
read -r _ <&3 && exit
send() { kill -s "$1" -- "$2" || { [ -e "/proc/$0" ] && sudo -n kill -s "$1" -- "$2"; }; }
set -C
(: >"$1/ending") && send TERM "$0"
seconds=0
while [ -e "/proc/$0" ] && [ $seconds -lt ${GRACE_MS.term / 1000} ]; do sleep 1; seconds=$((seconds + 1)); done
send KILL "-$0"
' $$ "$record" >/dev/null 2>&1 &
exec >"$record/output" 2>&1 3<&-
exec "$@"
`;

/** Starts the command of a build. Its temporary files are in the folder. */
export async function spawnBuild(
  { command, args }: DiskImageJob,
  folder: BuildFolder,
  env: Readonly<Record<string, string | undefined>>,
): Promise<ChildProcess> {
  const temporary = await folder.temporary();
  const child = spawn('/bin/sh', ['-c', GUARDED, 'sh', folder.record, command, ...args], {
    // Makes the child the leader of a new process group.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    // The system removes TMPDIR from the environment of sudo.
    env: { ...env, TMPDIR: temporary, TMP_DIR: temporary },
  });
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', reject);
  });
  return child;
}

/**
 * Ends the processes that a build has left. Resolves with the reason if some remain. A build whose leader still runs
 * has lost its builder, and gets the time to clean up.
 */
export async function endProcesses(folder: BuildFolder, clock: Clock, log: Logger): Promise<string | undefined> {
  const leader = await folder.leader();
  if (leader === undefined || !(await isGroupRunning(leader))) return undefined;
  log.warn('Ending the processes of a build', { process_group: leader.pid });
  if (await isRunning(leader)) {
    await signalLeader(folder, leader.pid, log);
    const end = clock.monotonic() + GRACE_MS.term - Math.max(0, clock.now() - (await folder.endingSince()));
    while (clock.monotonic() < end && (await isRunning(leader))) await sleep(clock, 100);
  }
  return killGroup(leader, clock);
}

/** Asks a build to end, unless it was asked before. */
async function signalLeader(folder: BuildFolder, pid: number, log: Logger): Promise<void> {
  if (!(await folder.startEnding())) return;
  try {
    await sendSignal(pid, 'SIGTERM');
  } catch (error) {
    log.warn('A build could not be asked to end', { reason: reasonOf(error) });
  }
}

/** Resolves with the reason if a process of the group remains. */
async function killGroup(leader: ProcessIdentity, clock: Clock): Promise<string | undefined> {
  const group = -leader.pid;
  try {
    await sendSignal(group, 'SIGKILL');
    if (await groupEnds(leader, clock, GRACE_MS.kill)) return undefined;
    // The kernel reports success if it could signal any process of the group.
    if (!isRoot()) await sendSignalAsRoot(group, 'SIGKILL');
    if (await groupEnds(leader, clock, GRACE_MS.kill)) return undefined;
    return `process group ${leader.pid} still runs after SIGKILL`;
  } catch (error) {
    // A process that has ended meanwhile cannot be signalled.
    if (await groupEnds(leader, clock, 0)) return undefined;
    return `process group ${leader.pid} still runs: ${reasonOf(error)}`;
  }
}

/** A build that is a child of this process, and leads a process group. */
export class RunningBuild {
  private readonly exited: Promise<Exit>;
  private readonly closed: Promise<void>;
  private exit: Exit | undefined;

  constructor(
    private readonly child: ChildProcess,
    private readonly folder: BuildFolder,
    private readonly clock: Clock,
    private readonly log: Logger,
  ) {
    const [, , , guard] = child.stdio;
    // The guard may have ended.
    guard?.on('error', () => guard.destroy());
    this.exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        this.exit = { code, signal };
        if (guard instanceof Writable) guard.end('\n');
        resolve(this.exit);
      });
    });
    this.closed = new Promise((resolve) => child.once('close', () => resolve()));
  }

  /** Resolves when the leader has ended by itself; rejects with the reason of the first signal that aborts. */
  endedOrAborted(signals: readonly AbortSignal[]): Promise<Exit> {
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        for (const signal of signals) signal.removeEventListener('abort', onAbort);
      };
      const onAbort = (): void => {
        const aborted = signals.find((signal) => signal.aborted);
        if (aborted === undefined) return;
        stop();
        reject(abortReason(aborted));
      };
      for (const signal of signals) signal.addEventListener('abort', onAbort, { once: true });
      onAbort();
      void this.exited.then((exit) => {
        stop();
        resolve(exit);
      });
    });
  }

  /** Ends the build and waits for the end of its output. */
  async terminate(): Promise<void> {
    const { pid } = this.child;
    const leader = await this.folder.leader();
    if (this.exit === undefined && pid !== undefined) {
      await signalLeader(this.folder, pid, this.log);
      await this.within(GRACE_MS.term, this.exited);
    }
    if (leader !== undefined) {
      // The output filter of diskimage-builder ends after the leader.
      if (!(await isRunning(leader))) await groupEnds(leader, this.clock, GRACE_MS.lastLines);
      await killGroup(leader, this.clock);
    }
    // A process that has left the group may hold the output open forever.
    await this.within(GRACE_MS.output, this.closed);
    for (const stream of this.child.stdio) stream?.destroy();
  }

  private async within(limitMs: number, event: Promise<unknown>): Promise<void> {
    const enough = new AbortController();
    const limit = sleep(this.clock, limitMs, enough.signal).catch(() => undefined);
    await Promise.race([event, limit]);
    enough.abort();
  }
}

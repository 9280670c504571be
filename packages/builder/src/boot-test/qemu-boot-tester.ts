/**
 * Boots a build under QEMU. The process of QEMU runs like the command of a build: with its console in the log of the
 * build, temporary files of its own, and a guard that ends it if the builder is killed.
 */

import { access, constants, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { abortReason, linkSignals, type Clock } from '@nodepool/core';
import { BuildFailedError, type DiskImageCreator } from '../disk-image-creator.js';
import type { BootTest, BootTester } from './boot-tester.js';
import { createSeed, type Seed } from './cloud-init-seed.js';
import { failed, freePort, runCommand, waitForLogin } from './machine-login.js';
import { bootableFile, qemuArguments, qemuProgram, type Accelerator } from './qemu-command.js';

const INSTALL = 'install QEMU (Debian: qemu-system-x86), or remove `boot-test`';
/** QEMU prints this, and then waits, if the processor cannot run the machine. */
const KVM_ERROR = 'KVM internal error';
/** The kernel of the machine prints this, and then waits. */
const PANIC = /Kernel panic - not syncing:[^\r\n]*/;
/** Attempts to boot an emulated machine whose kernel panics: on a busy host, its timers may be late. */
const EMULATED_ATTEMPTS = 2;

/** The machine could not run with KVM on this host. */
class KvmError extends Error {}

/** The kernel of the machine has panicked. */
class PanicError extends BuildFailedError {}

export class QemuBootTester implements BootTester {
  constructor(
    private readonly clock: Clock,
    private readonly imagesDir: string,
    private readonly creator: DiskImageCreator,
  ) {}

  async test(test: BootTest): Promise<void> {
    const { build, config, username, log } = test;
    if (bootableFile(test.files) === undefined) {
      throw failed('QEMU reads none of its formats; add `formats: [qcow2]`');
    }
    const folder = join(this.imagesDir, `.boot-test-${build.image}`);
    const seed = await createSeed(folder, `${build.image}-${build.id}`, username);
    try {
      if (config.kvm && (await hasKvm())) {
        try {
          await this.boot(test, seed, 'kvm');
          return;
        } catch (error) {
          if (!(error instanceof KvmError)) throw error;
          log.warn('KVM of this host cannot run the machine of a boot test; emulating it instead');
        }
      }
      for (let attempt = 1; ; attempt += 1) {
        try {
          await this.boot(test, seed, 'tcg');
          return;
        } catch (error) {
          if (!(error instanceof PanicError) || attempt >= EMULATED_ATTEMPTS) throw error;
          log.warn('The kernel of an emulated machine panicked; booting it again', { reason: error.message });
        }
      }
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  /** Runs one machine until its test has ended. */
  private async boot(test: BootTest, seed: Seed, accelerator: Accelerator): Promise<void> {
    const { build, config, files, log, signal } = test;
    const program = qemuProgram();
    const bootable = bootableFile(files);
    if (program === undefined || bootable === undefined) {
      throw new BuildFailedError('start', `boot tests are not supported on ${process.arch}; remove \`boot-test\``);
    }
    const port = await freePort();
    const { file, driver } = bootable;
    const args = qemuArguments({ path: file.path, driver, seed: seed.folder, port, accelerator, config });
    const done = new Error('the boot test has ended');
    const ending = linkSignals(signal);
    const startedAt = this.clock.monotonic();
    log.info('Booting a build', { file: file.path, accelerator, timeout_s: config.timeoutMs / 1000 });
    const machine = this.creator.create({
      ...{ image: build.image, build: build.id, command: program, args, env: {}, log, hint: INSTALL },
      // The test has limits of its own; this one ends a machine whose test hangs.
      timeoutMs: 2 * (config.timeoutMs + config.commandTimeoutMs) + 600_000,
      signal: ending.signal,
      onOutput: linesOf((line) => {
        if (line.includes(KVM_ERROR)) ending.abort(new KvmError(KVM_ERROR));
        const panic = PANIC.exec(line)?.[0];
        if (panic !== undefined) ending.abort(new PanicError('boot-test', `the build failed its boot test: ${panic}`));
      }),
    });
    const machineEnds = machine.then(
      () => ending.abort(failed('its machine switched off before its login answered; see the log of the build')),
      (error: unknown) => ending.abort(toError(error)),
    );
    let reason: Error | undefined;
    try {
      await this.login(test, seed, port, ending.signal);
      const seconds = Math.round((this.clock.monotonic() - startedAt) / 1000);
      log.info('The build has passed its boot test', { seconds, accelerator });
    } catch (error) {
      reason = ending.signal.aborted ? abortReason(ending.signal) : toError(error);
    }
    ending.abort(done);
    await machineEnds;
    ending.unlink();
    signal.throwIfAborted();
    if (reason !== undefined) throw reason;
  }

  private async login(
    { config, username, build }: BootTest,
    seed: Seed,
    port: number,
    signal: AbortSignal,
  ): Promise<void> {
    const limited = linkSignals(signal);
    const timer = this.clock.schedule(config.timeoutMs, () => {
      const log = this.creator.logFile(build);
      limited.abort(failed(`its login did not answer within ${config.timeoutMs / 1000} s (timeout); see ${log}`));
    });
    let hostKeys: readonly string[];
    try {
      hostKeys = await waitForLogin(port, this.clock, limited.signal);
    } catch (error) {
      limited.signal.throwIfAborted();
      throw error;
    } finally {
      timer.cancel();
      limited.unlink();
    }
    await runCommand({ port, username, hostKeys, seed, config }, this.clock, signal);
  }
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

/** Resolves with true if this process may use KVM. */
async function hasKvm(): Promise<boolean> {
  try {
    await access('/dev/kvm', constants.R_OK | constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Longest line of a console that is searched, characters. */
const MAX_LINE = 1000;

/** Returns a function that receives output in pieces and calls `onLine` with each line. */
function linesOf(onLine: (line: string) => void): (piece: Buffer) => void {
  let rest = '';
  return (piece) => {
    const lines = (rest + piece.toString('latin1')).split('\n');
    rest = (lines.pop() ?? '').slice(-MAX_LINE);
    for (const line of lines) onLine(line.slice(-MAX_LINE));
  };
}

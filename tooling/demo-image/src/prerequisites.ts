/**
 * The programs that a real build needs besides Nodepool: Debian's diskimage-builder and its tools. Missing ones are
 * installed.
 */

import { accessSync, constants, statfsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { Program, describeExit, type Narrator } from '@nodepool/harness';

/** One program of each required package. */
const PACKAGES: Readonly<Record<string, string>> = {
  'disk-image-create': 'python3-diskimage-builder',
  debootstrap: 'debootstrap',
  'qemu-img': 'qemu-utils',
  kpartx: 'kpartx',
  'mkfs.vfat': 'dosfstools',
  mksquashfs: 'squashfs-tools',
};

const INSTALL_DEADLINE_MS = 15 * 60_000;
/** Size of the unpacked image, its raw form and its compressed form. */
const NEEDED_BYTES = 6 * 1024 ** 3;

/** Rejects with a remedy if a requirement is missing and cannot be installed. */
export async function prepareForBuild(folder: string, narrator: Narrator): Promise<void> {
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize < NEEDED_BYTES) {
    const free = (bavail * bsize) / 1024 ** 3;
    throw new Error(
      `${folder} has ${free.toFixed(1)} GiB of free space, and a build needs 6; set TMPDIR to a larger disk`,
    );
  }
  if (process.getuid?.() !== 0) {
    throw new Error('only root can build a real image: run this as root, or with --stand-in');
  }
  const missing = [...new Set(Object.entries(PACKAGES).flatMap(([program, name]) => (isThere(program) ? [] : [name])))];
  if (missing.length === 0) return;
  narrator.say(`installing ${missing.join(', ')}, which a build needs`);
  await install(missing, folder);
}

async function install(packages: readonly string[], folder: string): Promise<void> {
  const byHand = `install them by hand: apt-get install ${packages.join(' ')}; or run this with --stand-in`;
  if (!isThere('apt-get')) throw new Error(`there is no apt-get; ${byHand}`);
  const env = { DEBIAN_FRONTEND: 'noninteractive' };
  const logFile = join(folder, 'apt-get.log');
  for (const args of [['update'], ['install', '--yes', '--no-install-recommends', ...packages]]) {
    const apt = await Program.start({ name: 'apt-get', command: 'apt-get', args, logFile, env });
    const exit = await apt.ends(INSTALL_DEADLINE_MS);
    if (exit.code !== 0)
      throw new Error(`apt-get ${args[0] ?? ''} failed: ${describeExit(exit)}; ${byHand}\n${apt.logTail()}`);
  }
}

function isThere(program: string): boolean {
  return [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin'].some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

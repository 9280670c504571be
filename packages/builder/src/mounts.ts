/**
 * Mounts and loop devices below a folder. Some builds end without unmounting what they have mounted: the host's `/dev`,
 * caches of packages, file systems of images.
 */

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCodeOf } from '@nodepool/core';
import { runAsRoot } from './processes.js';

const MOUNTS = '/proc/self/mountinfo';
const BLOCK_DEVICES = '/sys/block';

export interface Mount {
  readonly id: string;
  /** Id of the mount that contains the mount point. */
  readonly parent: string;
  /** Major and minor number of the device. */
  readonly device: string;
  readonly point: string;
  /** Number of the peer group: mounts that appear below one member appear below all. Undefined for a private mount. */
  readonly peers: string | undefined;
}

/** Parses the format of `/proc/<pid>/mountinfo`. */
export function parseMounts(text: string): readonly Mount[] {
  return text.split('\n').flatMap((line) => {
    const [id, parent, device, , point, , ...more] = line.split(' ');
    if (id === undefined || parent === undefined || device === undefined || point === undefined) return [];
    const optional = more.slice(0, more.indexOf('-'));
    const peers = optional.find((field) => field.startsWith('shared:'));
    return [{ id, parent, device, point: unescape(point), peers }];
  });
}

/**
 * Unmounts everything below the folder, and the folder itself if it is a mount point. `before` are the mounts that
 * existed before the build: those remain, even if the build has mounted a copy of them that the kernel keeps in step.
 */
export async function unmountBelow(folder: string, before: readonly Mount[]): Promise<void> {
  for (;;) {
    const mounts = await readMounts();
    const parents = new Set(mounts.map(({ parent }) => parent));
    const below = mounts.filter(({ point }) => isWithin(folder, point));
    // A mount with mounts on it comes after them.
    const next = below.findLast(({ id }) => !parents.has(id));
    if (next === undefined) {
      if (below.length > 0) throw new Error(`${below[0]?.point ?? folder} is in use by another mount`);
      return;
    }
    const parent = below.find(({ id }) => id === next.parent);
    if (parent?.peers !== undefined && isCopyOf(before, next)) {
      await runAsRoot('mount', ['--make-private', parent.point]);
    }
    await unmount(next);
  }
}

/** Detaches the loop devices of files below the folder. Rejects if the device of a partition uses one. */
export async function detachLoopDevices(folder: string): Promise<void> {
  for (const device of await loopDevicesOf(folder)) await runAsRoot('losetup', ['-d', `/dev/${device}`]);
  const [remaining] = await loopDevicesOf(folder);
  if (remaining === undefined) return;
  const users = await entriesOf(join(BLOCK_DEVICES, remaining, 'holders'));
  throw new Error(`/dev/${remaining} is in use${users.length === 0 ? '' : ` by ${users.join(', ')}`}`);
}

/** Resolves with true if a mount point is in the folder, or is the folder. */
export async function containsMounts(folder: string): Promise<boolean> {
  return (await readMounts()).some(({ point }) => isWithin(folder, point));
}

async function unmount({ point, id }: Mount): Promise<void> {
  try {
    await runAsRoot('umount', [point]);
  } catch {
    // A process outside the build can use the mount. It has no mounts on it, so the kernel detaches nothing else.
    await runAsRoot('umount', ['-l', point]);
  }
  if ((await readMounts()).some((mount) => mount.id === id && mount.point === point)) {
    throw new Error(`${point} is still mounted`);
  }
}

function isCopyOf(before: readonly Mount[], { device, peers }: Mount): boolean {
  return peers !== undefined && before.some((mount) => mount.device === device && mount.peers === peers);
}

function isWithin(folder: string, path: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

async function readMounts(): Promise<readonly Mount[]> {
  return parseMounts(await readFile(MOUNTS, 'utf8'));
}

async function loopDevicesOf(folder: string): Promise<readonly string[]> {
  const devices = (await entriesOf(BLOCK_DEVICES)).filter((name) => /^loop\d+$/.test(name));
  const files = await Promise.all(devices.map((name) => readOptional(join(BLOCK_DEVICES, name, 'loop/backing_file'))));
  return devices.filter((_name, index) => isWithin(folder, files[index]?.trimEnd() ?? ''));
}

async function entriesOf(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return [];
    throw error;
  }
}

/** Resolves with the content; undefined if there is no such file, or the device of the file is not in use (ENXIO). */
async function readOptional(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ENXIO', 'ENODEV'].includes(errorCodeOf(error) ?? '')) return undefined;
    throw error;
  }
}

/** Replaces the octal escapes of spaces, tabs, line feeds and backslashes. */
function unescape(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_all, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}

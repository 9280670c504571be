/**
 * The seed of a test machine: a folder that QEMU presents as a disk with the label `CIDATA`, which the data source
 * NoCloud of cloud-init reads. It allows the login with a key of its own.
 */

import { execFile } from 'node:child_process';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);

export interface Seed {
  /** The folder with the files of the seed. */
  readonly folder: string;
  /** File with the private key for the login. */
  readonly identity: string;
}

/** Creates the seed in an empty folder, replacing one that a killed builder has left. */
export async function createSeed(path: string, instance: string, username: string): Promise<Seed> {
  await rm(path, { recursive: true, force: true });
  const folder = join(path, 'seed');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const identity = join(path, 'key');
  await execute('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'nodepool-boot-test', '-f', identity]);
  const key = (await readFile(`${identity}.pub`, 'utf8')).trim();
  const user = { name: username, lock_passwd: true, shell: '/bin/sh', ssh_authorized_keys: [key] };
  // JSON is YAML, and quotes every text.
  const userData = { users: [user], ssh_authorized_keys: [key] };
  await writeFile(join(folder, 'meta-data'), `${JSON.stringify({ 'instance-id': instance })}\n`);
  await writeFile(join(folder, 'user-data'), `#cloud-config\n${JSON.stringify(userData)}\n`);
  return { folder, identity };
}

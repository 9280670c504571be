/** Finds moto: in a given folder, among the unpacked packages, or in the machine's Python. */

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Folder with Python packages, moto among them. */
const FOLDER_VARIABLE = 'NODEPOOL_MOTO';
/** Folder that `unpack.sh` creates. */
export const MOTO_PACKAGES = join(__dirname, '..', 'packages');
const CHECK_TIMEOUT_MS = 60_000;

export interface MotoInstallation {
  /** `PYTHONPATH` of the server; undefined for the packages of Python itself. */
  readonly pythonPath: string | undefined;
}

/** Returns the reason if there is no moto that starts. */
export function findMoto(env: NodeJS.ProcessEnv = process.env): MotoInstallation | string {
  const given = env[FOLDER_VARIABLE] ?? '';
  const unpacked = join(MOTO_PACKAGES, 'usr', 'lib', 'python3', 'dist-packages');
  const pythonPath = given !== '' ? given : existsSync(unpacked) ? unpacked : undefined;
  const { status } = spawnSync('python3', ['-c', 'import moto.server'], {
    env: pythonPath === undefined ? env : { ...env, PYTHONPATH: pythonPath },
    timeout: CHECK_TIMEOUT_MS,
  });
  if (status === 0) return { pythonPath };
  const where = pythonPath ?? 'the packages of python3';
  return `there is no moto in ${where}; pnpm test:aws unpacks one, or set ${FOLDER_VARIABLE} to its folder`;
}

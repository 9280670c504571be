/** Starts moto's server. */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sleep, systemClock } from '@nodepool/core';
import { Program } from '@nodepool/harness';
import type { MotoInstallation } from './find-moto.js';

const SERVER = `import sys
from moto.server import main
sys.argv = ["moto_server", "-H", "127.0.0.1", "-p", sys.argv[1]]
main()`;
/** Checks of images, key pairs and types, which moto omits by default. */
const STRICT = {
  MOTO_ENABLE_AMI_VALIDATION: 'true',
  MOTO_ENABLE_KEYPAIR_VALIDATION: 'true',
  MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION: 'true',
};
/** Python reads many files at the first start (ms). */
const START_TIMEOUT_MS = 120_000;
const POLL_MS = 100;

export interface RunningMoto {
  /** Address of all services. */
  readonly url: string;
  /** Deletes all resources. */
  reset(): Promise<void>;
  stop(): Promise<void>;
}

/** Resolves when the server answers. Rejects with its output if it ends before. */
export async function startMoto({ pythonPath }: MotoInstallation): Promise<RunningMoto> {
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), 'nodepool-moto-'));
  const program = await Program.start({
    name: 'moto',
    command: 'python3',
    args: ['-c', SERVER, String(port)],
    logFile: join(folder, 'log'),
    env: { ...STRICT, ...(pythonPath === undefined ? {} : { PYTHONPATH: pythonPath }) },
  });
  const stop = async (): Promise<void> => {
    await program.stop();
    rmSync(folder, { recursive: true });
  };
  const url = `http://127.0.0.1:${port}`;
  let exit: unknown;
  void program.exited.then((ended) => (exit = ended));
  const deadline = systemClock.monotonic() + START_TIMEOUT_MS;
  while (!(await answers(url))) {
    if (exit !== undefined || systemClock.monotonic() > deadline) {
      const said = readFileSync(program.logFile, 'utf8').slice(-2000);
      await stop();
      throw new Error(`moto does not answer at ${url}: ${said}`);
    }
    await sleep(systemClock, POLL_MS);
  }
  return { url, stop, reset: () => resetMoto(url) };
}

/** Deletes all resources of a running moto. */
export async function resetMoto(url: string): Promise<void> {
  const { status } = await fetch(`${url}/moto-api/reset`, { method: 'POST' });
  if (status !== 200) throw new Error(`moto answered ${status} to a reset`);
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/moto-api/data.json`)).ok;
  } catch {
    // It does not listen yet.
    return false;
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  return address.port;
}

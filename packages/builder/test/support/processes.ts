/** The machine's processes as reported by the kernel. */

import { readdir, readFile } from 'node:fs/promises';
import { sleep, systemClock } from '@nodepool/core';

const POLL_INTERVAL_MS = 10;

/** Returns the ids of the running processes whose environment contains the text, without zombies. */
export async function processesWith(environment: string): Promise<string[]> {
  const ids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    ids.map(async (pid) => (await read(`/proc/${pid}/environ`)).includes(environment) && (await isRunning(pid))),
  );
  return ids.filter((_, index) => found[index]);
}

/** Polls until the condition holds, because the kernel ends a process some time after SIGKILL, without an event. */
export async function eventually(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(systemClock, POLL_INTERVAL_MS);
}

export async function isRunning(pid: string): Promise<boolean> {
  const status = await read(`/proc/${pid}/stat`);
  return status !== '' && !status.includes(') Z ') && !status.includes(') X ');
}

/** Returns the process group. */
export async function groupOf(pid: string): Promise<string | undefined> {
  return /\) \S \d+ (\d+) /.exec(await read(`/proc/${pid}/stat`))?.[1];
}

/** Returns the content of a file, or an empty string if its process has ended. */
const read = (file: string): Promise<string> => readFile(file, 'utf8').catch(() => '');

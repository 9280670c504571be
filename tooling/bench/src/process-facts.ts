/** Process information from the kernel (Linux, proc(5)). */

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Clock ticks per second, the unit of processor time. */
const TICKS_PER_SECOND = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

/** Returns the processor time of a process in seconds, in user and system mode. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The second field is the program's name in parentheses, which may contain any character.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [user, system] = [fields[11], fields[12]].map(Number);
  if (user === undefined || system === undefined) throw new Error(`/proc/${pid}/stat has too few fields: ${stat}`);
  return (user + system) / TICKS_PER_SECOND;
}

/** Returns the peak resident memory of a process in bytes. */
export function peakResidentBytes(pid: number): number {
  return memoryFact(pid, 'VmHWM');
}

/** Returns the resident memory of a process in bytes. */
export function residentBytes(pid: number): number {
  return memoryFact(pid, 'VmRSS');
}

/** Returns how often the main thread of a process has waited and was woken up. */
export function wakeUps(pid: number): number {
  return statusFact(pid, 'voluntary_ctxt_switches');
}

function memoryFact(pid: number, field: string): number {
  return statusFact(pid, field) * 1024;
}

function statusFact(pid: number, field: string): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const value = new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(status)?.[1];
  if (value === undefined) throw new Error(`/proc/${pid}/status has no ${field}`);
  return Number(value);
}

import { errorCodeOf } from '../runtime/error-text.js';

/**
 * Sends a signal to a process that may end at any time, or to a group if the id is negative. Returns false if there is
 * none. Signal 0 only looks. A file that is still empty reads as 0, which would be the group of this process: 0, -1 and
 * what is no number count as none.
 */
export function signalIfThere(pid: number, signal: NodeJS.Signals | 0 = 'SIGKILL'): boolean {
  if (!Number.isInteger(pid) || Math.abs(pid) <= 1) return false;
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if (errorCodeOf(error) === 'ESRCH') return false;
    throw error;
  }
}

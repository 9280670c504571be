/** What SIGUSR2 asks a launcher for. */

import { Diagnostics, type DiagnosticsOptions } from '@nodepool/core';
import { dumpStacks, type StackDumpSources } from './stack-dump.js';

export function launcherDiagnostics(
  options: StackDumpSources & Omit<DiagnosticsOptions, 'program' | 'dump'>,
): Diagnostics {
  return new Diagnostics({ ...options, program: 'nodepool-launcher', dump: (log) => dumpStacks(options, log) });
}

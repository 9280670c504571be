/** Gathers the dependencies of `nodepool doctor`, which must work without a usable configuration or ensemble. */

import { systemClock, systemRandom } from '@nodepool/core';
import { connectToZooKeeper } from '@nodepool/store';
import type { ListFormat } from './command-context.js';
import { doctor } from './commands/doctor.js';
import { examine } from './doctor/doctor.js';
import { readConfig, withLog } from './open.js';
import type { CommonOptions, ProcessIo } from './process-io.js';

/** Rejects with `CommandError` if there is an error among the findings. */
export async function runDoctor(
  options: CommonOptions,
  io: ProcessIo,
  list: { readonly format: ListFormat },
): Promise<void> {
  const { clock = systemClock, random = systemRandom, connect = connectToZooKeeper, interrupted } = io;
  await withLog(options, async (log) => {
    const findings = await examine({
      loaded: await readConfig(options, io),
      clock,
      random,
      log,
      interrupted,
      connect: ({ zookeeper }) =>
        connect(zookeeper, { clock, log, timeoutMs: options.connectTimeout * 1000, signal: interrupted }),
    });
    doctor(io, findings, list);
  });
}

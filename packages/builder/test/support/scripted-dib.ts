/** A `disk-image-create` without a process, with a scripted duration and outcome. */

import { sleep, type Clock } from '@nodepool/core';
import type { BuildRef } from '@nodepool/store';
import { BuildFailedError, type DiskImageCreator, type DiskImageJob } from '../../src/index.js';
import type { MemoryDisk } from './memory-disk.js';

export type Ending = 'works' | 'fails' | 'hangs' | 'no-file' | 'half' | 'full';

export class ScriptedDib implements DiskImageCreator {
  /** The jobs that were run, in order. */
  readonly jobs: DiskImageJob[] = [];
  ending: () => Ending = () => 'works';
  durationMs: () => number = () => 60_000;

  constructor(
    private readonly disk: MemoryDisk,
    private readonly clock: Clock,
  ) {}

  logFile({ image, id }: BuildRef): string {
    return `/logs/${image}-${id}.log`;
  }

  leftovers(): Promise<readonly BuildRef[]> {
    return Promise.resolve([]);
  }

  cleanUp(): Promise<void> {
    return Promise.resolve();
  }

  async create(job: DiskImageJob): Promise<void> {
    this.jobs.push(job);
    const ending = this.ending();
    const duration = ending === 'hangs' ? job.timeoutMs : Math.min(this.durationMs(), job.timeoutMs);
    const formats = (job.args[job.args.indexOf('-t') + 1] ?? '').split(',');
    const build = { image: job.image, id: job.build };
    await sleep(this.clock, duration, job.signal);
    if (ending === 'hangs') throw new BuildFailedError('timeout', 'it took too long');
    if (ending === 'full') {
      this.disk.write(build, formats[0] ?? '', 0);
      throw new BuildFailedError('exit', 'No space left on device', { exitCode: 1 });
    }
    if (ending === 'fails') throw new BuildFailedError('exit', 'it ended with status 100', { exitCode: 100 });
    const made = { works: formats, half: formats.slice(0, 1), 'no-file': [] }[ending];
    for (const format of made) this.disk.write(build, format);
  }
}

/** Boot tests and sources of images without processes and networks, with scripted outcomes. */

import type { ImageSourceConfig } from '@nodepool/core';
import { sleep, type Clock } from '@nodepool/core';
import {
  BuildFailedError,
  type BootTest,
  type BootTester,
  type ImageSources,
  type SourceJob,
  type SourceLeftover,
} from '../../src/index.js';
import type { MemoryDisk } from './memory-disk.js';

export class ScriptedBootTester implements BootTester {
  /** Ids of the tested builds, in order. */
  readonly tested: string[] = [];
  passes: () => boolean = () => true;
  durationMs = 30_000;

  constructor(private readonly clock: Clock) {}

  async test({ build, signal }: BootTest): Promise<void> {
    await sleep(this.clock, this.durationMs, signal);
    if (!this.passes()) throw new BuildFailedError('boot-test', 'the build failed its boot test: no login');
    this.tested.push(build.id);
  }
}

export class ScriptedSources implements ImageSources {
  /** The identity of each path; a path without one has no file. */
  readonly present = new Map<string, string>();
  readonly fetched: string[] = [];
  /** The temporary files in images-dir. */
  left: readonly SourceLeftover[] = [];

  constructor(private readonly disk: MemoryDisk) {}

  identity({ path = '' }: ImageSourceConfig): Promise<string | undefined> {
    return Promise.resolve(this.present.get(path));
  }

  fetch({ build, source, formats }: SourceJob): Promise<string | undefined> {
    const identity = this.present.get(source.path ?? '');
    if (identity === undefined) throw new BuildFailedError('source', `there is no file ${source.path ?? ''}`);
    this.fetched.push(identity);
    for (const format of formats) this.disk.write(build, format);
    return Promise.resolve(identity);
  }

  leftovers(): Promise<readonly SourceLeftover[]> {
    return Promise.resolve(this.left);
  }

  remove(leftover: SourceLeftover): Promise<void> {
    this.left = this.left.filter((each) => each !== leftover);
    return Promise.resolve();
  }
}

/** The settings in force, which follow their files. Unusable files change nothing. */

import { isDeepStrictEqual } from 'node:util';
import { watchFiles, type FileWatch, type WatchFiles } from '@nodepool/config';
import {
  Emitter,
  reasonOf,
  type Clock,
  type Gauge,
  type LogFields,
  type Logger,
  type Metrics,
  type Timer,
} from '@nodepool/core';
import { SettingsError } from './settings-file.js';

/** Time for several files to change together (ms). */
const DEBOUNCE_MS = 200;

/** The files of a program's settings. */
export interface SettingsSource<T> {
  /** Reads the settings. Rejects with `SettingsError`. */
  readonly read: () => Promise<T>;
  /** Returns the files that are watched. */
  readonly files: (settings: T) => readonly string[];
  /** Number of problems in refused settings. */
  readonly problems: Gauge<never>;
  /** Returns the fields of the log entry when settings are applied. */
  readonly describe: (settings: T) => LogFields;
}

export interface LiveSettingsOptions<T> extends SettingsSource<T> {
  readonly clock: Clock;
  readonly log: Logger;
  readonly tasks: { run(name: string, work: () => Promise<void>): void };
  readonly metrics: Metrics;
  /** Default: the events of the file system. */
  readonly watch?: WatchFiles;
}

export class LiveSettings<T> {
  private readonly changes: Emitter<T>;
  private watcher: FileWatch | undefined;
  private timer: Timer | undefined;
  private queue = Promise.resolve();
  private problems = '';
  private stopped = false;

  constructor(
    private settings: T,
    private readonly options: LiveSettingsOptions<T>,
  ) {
    const { log, metrics, problems } = options;
    this.changes = new Emitter((error) => log.error('The changed settings were not applied', error));
    metrics.set(problems, {}, 0);
  }

  get current(): T {
    return this.settings;
  }

  /** `listener` is also called with equal settings, since another file that they name may have changed. */
  onChange(listener: (settings: T) => void): () => void {
    return this.changes.on(listener);
  }

  async start(): Promise<void> {
    await this.watchAgain();
    // A file may have changed since it was read.
    await this.reload();
  }

  /** Reads the files now. Never rejects. */
  reload(): Promise<void> {
    this.queue = this.queue.then(() => this.read());
    return this.queue;
  }

  async stop(): Promise<void> {
    this.stopped = true;
    this.timer?.cancel();
    await this.watcher?.close();
    await this.queue;
  }

  private async watchAgain(): Promise<void> {
    const { files, log, watch = watchFiles } = this.options;
    const former = this.watcher;
    this.watcher = watch(
      files(this.settings),
      () => this.schedule(),
      (error) => log.warn('The settings cannot be watched: changes need a reload', { error }),
    );
    await this.watcher.ready();
    await former?.close();
  }

  private schedule(): void {
    if (this.stopped) return;
    const { clock, tasks } = this.options;
    this.timer?.cancel();
    this.timer = clock.schedule(DEBOUNCE_MS, () => tasks.run('reload of the settings', () => this.reload()), {
      background: true,
    });
  }

  private async read(): Promise<void> {
    if (this.stopped) return;
    const { read, files, log, metrics, problems: gauge, describe } = this.options;
    try {
      const settings = await read();
      const before = this.settings;
      this.settings = settings;
      metrics.set(gauge, {}, 0);
      if (this.problems !== '') log.info('The settings are valid again and in force');
      this.problems = '';
      if (!isDeepStrictEqual(settings, before)) log.info('Applying the changed settings', describe(settings));
      this.changes.emit(settings);
      if (!isDeepStrictEqual(files(settings), files(before))) await this.watchAgain();
    } catch (error) {
      const problems = error instanceof SettingsError ? error.problems : [reasonOf(error)];
      metrics.set(gauge, {}, problems.length);
      const text = problems.join('\n');
      if (text !== this.problems) {
        log.error('The changed settings are refused; the previous ones stay in force', undefined, { problems });
      }
      this.problems = text;
    }
  }
}

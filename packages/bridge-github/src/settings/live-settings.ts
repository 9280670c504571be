/** The settings in force, which follow the file. An unusable file changes nothing. */

import { isDeepStrictEqual } from 'node:util';
import { watchFiles, type FileWatch, type WatchFiles } from '@nodepool/config';
import {
  Emitter,
  reasonOf,
  type Clock,
  type Logger,
  type Metrics,
  type TaskSupervisor,
  type Timer,
} from '@nodepool/core';
import { SETTINGS_PROBLEMS } from '../metrics.js';
import { readSettings, SettingsError, type Settings } from './settings.js';

/** Time for several changes of the file to settle (ms). */
const DEBOUNCE_MS = 200;

export interface LiveSettingsOptions {
  readonly file: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly tasks: TaskSupervisor;
  /** Default: the events of the file system. */
  readonly watch?: WatchFiles;
}

export class LiveSettings {
  private readonly changes: Emitter<Settings>;
  private watcher: FileWatch | undefined;
  private timer: Timer | undefined;
  private queue = Promise.resolve();
  private problems = '';
  private stopped = false;

  constructor(
    private settings: Settings,
    private readonly options: LiveSettingsOptions,
  ) {
    const { log, metrics } = options;
    this.changes = new Emitter((error) => log.error('The changed settings were not applied', error));
    metrics.set(SETTINGS_PROBLEMS, {}, 0);
  }

  get current(): Settings {
    return this.settings;
  }

  onChange(listener: (settings: Settings) => void): () => void {
    return this.changes.on(listener);
  }

  async start(): Promise<void> {
    const { file, log, watch = watchFiles } = this.options;
    const onError = (error: unknown): void =>
      log.warn('The settings cannot be watched: changes need a reload', { error });
    this.watcher = watch([file], () => this.schedule(), onError);
    await this.watcher.ready();
    // The file may have changed since it was read.
    await this.reload();
  }

  /** Reads the file now. Never rejects. */
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
    const { file, log, metrics } = this.options;
    try {
      const settings = await readSettings(file);
      metrics.set(SETTINGS_PROBLEMS, {}, 0);
      if (this.problems !== '') log.info('The settings are valid again and in force');
      this.problems = '';
      if (isDeepStrictEqual(settings, this.settings)) return;
      this.settings = settings;
      log.info('Applying the changed settings', { installations: settings.installations.map(({ name }) => name) });
      this.changes.emit(settings);
    } catch (error) {
      const problems = error instanceof SettingsError ? error.problems : [reasonOf(error)];
      metrics.set(SETTINGS_PROBLEMS, {}, problems.length);
      const text = problems.join('\n');
      if (text !== this.problems) {
        log.error('The changed settings are refused; the previous ones stay in force', undefined, { problems });
      }
      this.problems = text;
    }
  }
}

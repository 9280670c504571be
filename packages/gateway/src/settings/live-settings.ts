/** The settings in force, which follow the files. Unusable files change nothing. */

import { isDeepStrictEqual } from 'node:util';
import { watchFiles, type FileWatch, type WatchFiles } from '@nodepool/config';
import { Emitter, reasonOf, type Clock, type Logger, type Metrics, type Timer } from '@nodepool/core';
import { SETTINGS_PROBLEMS } from '../metrics.js';
import { readSettings, SettingsError, type Settings } from './settings.js';

export interface LiveSettingsOptions {
  readonly file: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly tasks: { run(name: string, work: () => Promise<void>): void };
  readonly metrics: Metrics;
  /** Default: the events of the file system. */
  readonly watch?: WatchFiles;
}

/** Time for several files to change together, in milliseconds. */
const DEBOUNCE_MS = 200;

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
    this.changes = new Emitter((error) => options.log.error('The changed settings were not applied', error));
    options.metrics.set(SETTINGS_PROBLEMS, {}, 0);
  }

  get current(): Settings {
    return this.settings;
  }

  /** `listener` is also called when only a certificate has changed. */
  onChange(listener: (settings: Settings) => void): () => void {
    return this.changes.on(listener);
  }

  async start(): Promise<void> {
    await this.watchAgain();
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
    const { file, log, watch = watchFiles } = this.options;
    const { tokenFile, tls } = this.settings;
    const files = [file, tokenFile, tls?.cert, tls?.key].filter((each) => each !== undefined);
    const former = this.watcher;
    this.watcher = watch(
      files,
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
    const { file, log, metrics } = this.options;
    try {
      const settings = await readSettings(file);
      const before = this.settings;
      this.settings = settings;
      metrics.set(SETTINGS_PROBLEMS, {}, 0);
      if (this.problems !== '') log.info('The settings are valid again and in force');
      this.problems = '';
      if (!isDeepStrictEqual(settings.listen, before.listen)) {
        log.warn('A changed address takes effect at the next start of the program', { listen: settings.listen });
      }
      if (!isDeepStrictEqual(settings, before))
        log.info('Applying the changed settings', { tokens: settings.tokens.length });
      this.changes.emit(settings);
      if (!isDeepStrictEqual([settings.tokenFile, settings.tls], [before.tokenFile, before.tls]))
        await this.watchAgain();
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

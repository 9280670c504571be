/** Keeps the running configuration: follows the files, and changes nothing for files that are not right. */

import type { Clock, Timer } from '../runtime/clock.js';
import type { TaskSupervisor } from '../runtime/tasks.js';
import { diffConfig, type ConfigDiff } from './diff.js';
import { watchFiles, type FileWatch, type WatchFiles } from './file-watch.js';
import { loadConfig, type LoadOptions, type LoadResult } from './load.js';
import type { ConfigProblem } from './problems.js';
import type { NodepoolConfig } from './types.js';

export interface ConfigListener {
  /** There is a new configuration that differs from the one before. */
  changed(config: NodepoolConfig, diff: ConfigDiff): void;
  /** The files have new contents that are not right; the configuration stays. Once for the same contents. */
  refused(problems: readonly ConfigProblem[]): void;
  /** The files are right again after they had been refused. Called before `changed`, which follows if they differ. */
  accepted(): void;
}

export interface ConfigWatcherOptions extends LoadOptions {
  /** The running configuration, as `loadConfig` gave it. */
  readonly initial: Extract<LoadResult, { ok: true }>;
  readonly listener: ConfigListener;
  readonly clock: Clock;
  /** Reloads run in it; a failure of the watching, or of the listener, goes to its `onFailure`. */
  readonly tasks: TaskSupervisor;
  /** Milliseconds without an event after which the files are read: an editor takes several steps. Default 250. */
  readonly debounceMs?: number;
  /** Default: the file system. */
  readonly watchFiles?: WatchFiles;
}

const DEBOUNCE_MS = 250;

export class ConfigWatcher {
  private running: NodepoolConfig;
  private refusedProblems: readonly ConfigProblem[] = [];
  /** Of the contents that were looked at last. */
  private fingerprint: string;
  private files: FileWatch | undefined;
  private timer: Timer | undefined;
  /** The load that runs, and those queued behind it. */
  private queue: Promise<unknown> = Promise.resolve();
  private stopped = false;

  constructor(private readonly options: ConfigWatcherOptions) {
    this.running = options.initial.config;
    this.fingerprint = options.initial.fingerprint;
  }

  /** The configuration that is in force. */
  get config(): NodepoolConfig {
    return this.running;
  }

  /** What is wrong with the files as they are now; empty when they are in force. */
  get problems(): readonly ConfigProblem[] {
    return this.refusedProblems;
  }

  /** Starts to follow the files. Resolves once changes are noticed; those made since the initial load are seen then. */
  async start(): Promise<void> {
    const { file, secureFile } = this.options;
    const files = secureFile === undefined ? [file] : [file, secureFile];
    const watch = this.options.watchFiles ?? watchFiles;
    this.files = watch(
      files,
      () => this.noticeLater(),
      (error) => this.fail(error),
    );
    await this.files.ready();
    await this.load(false);
  }

  /** Reads the files now, and the drivers with them, changed or not. */
  reload(): Promise<LoadResult> {
    return this.load(true);
  }

  /** Stops following. Resolves once nothing runs any more; the listener hears nothing from the call on. */
  async stop(): Promise<void> {
    this.stopped = true;
    this.timer?.cancel();
    await this.files?.close();
    await this.queue;
  }

  private noticeLater(): void {
    if (this.stopped) return;
    this.timer?.cancel();
    const delay = this.options.debounceMs ?? DEBOUNCE_MS;
    this.timer = this.options.clock.schedule(
      delay,
      () =>
        this.options.tasks.run('reload of the configuration', async () => {
          await this.load(false);
        }),
      { background: true },
    );
  }

  private fail(error: unknown): void {
    this.options.tasks.run('watch of the configuration files', () =>
      Promise.reject(new Error('the configuration files cannot be watched: changes need a reload', { cause: error })),
    );
  }

  /** One load at a time, so that an older one can't overtake a newer one. */
  private load(always: boolean): Promise<LoadResult> {
    const result = this.queue.then(async () => {
      const loaded = await loadConfig(this.options);
      if (!this.stopped) this.apply(loaded, always);
      return loaded;
    });
    // A failure goes to who asked for that load, not to who asks next.
    this.queue = result.catch(() => undefined);
    return result;
  }

  private apply(result: LoadResult, always: boolean): void {
    const isNew = result.fingerprint !== this.fingerprint;
    this.fingerprint = result.fingerprint;
    if (!isNew && !always) return;
    if (!result.ok) {
      const known = !isNew && this.refusedProblems.length > 0;
      this.refusedProblems = result.problems;
      if (!known) this.options.listener.refused(result.problems);
      return;
    }
    const wasRefused = this.refusedProblems.length > 0;
    this.refusedProblems = [];
    if (wasRefused) this.options.listener.accepted();
    const diff = diffConfig(this.running, result.config);
    if (diff.empty) return;
    this.running = result.config;
    this.options.listener.changed(result.config, diff);
  }
}

/** Keeps the running configuration: follows the files, and changes nothing for files that are not right. */

import type { Clock, Timer, TaskSupervisor } from '@nodepool/core';
import { diffConfig, type ConfigDiff } from './diff.js';
import { watchFiles, type FileWatch, type WatchFiles } from './file-watch.js';
import { loadChangedConfig, loadConfig, type LoadOptions, type LoadResult } from './load.js';
import type { ConfigProblem } from './problems.js';
import type { NodepoolConfig } from './types.js';

export interface ConfigListener {
  /** There is a new configuration that differs from the one before. `warnings` are all of the new one. */
  changed(config: NodepoolConfig, diff: ConfigDiff, warnings: readonly ConfigProblem[]): void;
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
    await this.loadChanged();
  }

  /** Reads the files now, and the drivers with them, changed or not. */
  reload(): Promise<LoadResult> {
    return this.enqueue(async () => {
      const loaded = await loadConfig(this.options);
      this.apply(loaded);
      return loaded;
    });
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
      () => this.options.tasks.run('reload of the configuration', () => this.loadChanged()),
      { background: true },
    );
  }

  private fail(error: unknown): void {
    this.options.tasks.run('watch of the configuration files', () =>
      Promise.reject(new Error('the configuration files cannot be watched: changes need a reload', { cause: error })),
    );
  }

  private loadChanged(): Promise<void> {
    return this.enqueue(async () => {
      const loaded = await loadChangedConfig(this.options, this.fingerprint);
      if (loaded !== undefined) this.apply(loaded);
    });
  }

  /** Runs one load at a time, so that an older one can't overtake a newer one. */
  private enqueue<T>(load: () => Promise<T>): Promise<T> {
    const result = this.queue.then(load);
    // A failure goes to the caller of that load, not to that of the next one.
    this.queue = result.catch(() => undefined);
    return result;
  }

  private apply(result: LoadResult): void {
    if (this.stopped) return;
    const isNew = result.fingerprint !== this.fingerprint;
    this.fingerprint = result.fingerprint;
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
    this.options.listener.changed(result.config, diff, result.warnings);
  }
}

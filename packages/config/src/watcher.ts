/** Watches the configuration files. While the files are invalid, the running configuration stays in force. */

import type { Clock, Timer, TaskSupervisor } from '@nodepool/core';
import { diffConfig, type ConfigDiff } from './diff.js';
import { watchFiles, type FileWatch, type WatchFiles } from './file-watch.js';
import { loadChangedConfig, loadConfig, type LoadOptions, type LoadResult } from './load.js';
import type { ConfigProblem } from './problems.js';
import type { NodepoolConfig } from './types.js';

export interface ConfigListener {
  /** Called when the new configuration differs from the previous one. `warnings` are all warnings of the new one. */
  changed(config: NodepoolConfig, diff: ConfigDiff, warnings: readonly ConfigProblem[]): void;
  /** Called when the files are invalid, once for the same contents. The configuration does not change. */
  refused(problems: readonly ConfigProblem[]): void;
  /** Called when the files are valid again after a refusal. Precedes `changed`, which follows if they differ. */
  accepted(): void;
  /** Called when a requested reload finds nothing new. `problems` are those of files that are still invalid. */
  unchanged?(problems: readonly ConfigProblem[]): void;
}

export interface ConfigWatcherOptions extends LoadOptions {
  /** The running configuration, from `loadConfig`. */
  readonly initial: Extract<LoadResult, { ok: true }>;
  readonly listener: ConfigListener;
  readonly clock: Clock;
  /** Runs reloads; its `onFailure` receives failures of the watching and of the listener. */
  readonly tasks: TaskSupervisor;
  /** Milliseconds without an event before the files are read, since an editor saves in several steps. Default 250. */
  readonly debounceMs?: number;
  /** Default: the file system. */
  readonly watchFiles?: WatchFiles;
}

const DEBOUNCE_MS = 250;

export class ConfigWatcher {
  private running: Extract<LoadResult, { ok: true }>;
  private refusedProblems: readonly ConfigProblem[] = [];
  private refusedAt: number | undefined;
  /** Fingerprint of the contents that were read last. */
  private fingerprint: string;
  private files: FileWatch | undefined;
  private timer: Timer | undefined;
  /** The running load and those queued behind it. */
  private queue: Promise<unknown> = Promise.resolve();
  private stopped = false;

  constructor(private readonly options: ConfigWatcherOptions) {
    this.running = options.initial;
    this.fingerprint = options.initial.fingerprint;
  }

  get config(): NodepoolConfig {
    return this.running.config;
  }

  /** Returns the load of the configuration in force. */
  get loaded(): Extract<LoadResult, { ok: true }> {
    return this.running;
  }

  /** Returns the problems of the present files; empty if they are in force. */
  get problems(): readonly ConfigProblem[] {
    return this.refusedProblems;
  }

  /** Returns the time of the first refusal since the files were valid, in ms; undefined if they are in force. */
  get refusedSince(): number | undefined {
    return this.refusedAt;
  }

  /** Starts to watch the files. Resolves once later changes are noticed, including those since the initial load. */
  async start(): Promise<void> {
    const { file, secureFile } = this.options;
    const files = secureFile === undefined ? [file] : [file, secureFile];
    const watch = this.options.watchFiles ?? watchFiles;
    this.files = watch(
      files,
      () => this.scheduleReload(),
      (error) => this.fail(error),
    );
    await this.files.ready();
    await this.loadChanged();
  }

  /** Reloads the files and the drivers, changed or not. */
  reload(): Promise<LoadResult> {
    return this.enqueue(async () => {
      const loaded = await loadConfig(this.options);
      const isReported = this.apply(loaded);
      if (!isReported && !this.stopped) this.options.listener.unchanged?.(this.refusedProblems);
      return loaded;
    });
  }

  /** Stops watching. Resolves once no load is running; the listener is not called after this call. */
  async stop(): Promise<void> {
    this.stopped = true;
    this.timer?.cancel();
    await this.files?.close();
    await this.queue;
  }

  private scheduleReload(): void {
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

  /** Runs one load at a time, so that an older one cannot overtake a newer one. */
  private enqueue<T>(load: () => Promise<T>): Promise<T> {
    const result = this.queue.then(load);
    // The caller of that load receives its failure; the next load continues.
    this.queue = result.catch(() => undefined);
    return result;
  }

  /** Returns true if the listener was notified. */
  private apply(result: LoadResult): boolean {
    if (this.stopped) return false;
    const isNew = result.fingerprint !== this.fingerprint;
    this.fingerprint = result.fingerprint;
    if (!result.ok) {
      const known = !isNew && this.refusedProblems.length > 0;
      this.refusedProblems = result.problems;
      this.refusedAt ??= this.options.clock.now();
      if (!known) this.options.listener.refused(result.problems);
      return !known;
    }
    const wasRefused = this.refusedProblems.length > 0;
    this.refusedProblems = [];
    this.refusedAt = undefined;
    if (wasRefused) this.options.listener.accepted();
    const diff = diffConfig(this.running.config, result.config);
    if (diff.empty) return wasRefused;
    this.running = result;
    this.options.listener.changed(result.config, diff, result.warnings);
    return true;
  }
}

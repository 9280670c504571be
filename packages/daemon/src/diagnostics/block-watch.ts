/**
 * Detects and reports blocks of the event loop: a separate thread watches the main one and takes its stack during a
 * block.
 */

import { existsSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import type { NodepoolConfig } from '@nodepool/config';
import type { Logger } from '@nodepool/core';
import type { BlockReport, BlockWatchData } from './block-watch-worker.js';
import type { EventLoopMonitor } from './event-loop.js';

/** Length (ms) from which a block is reported. */
const THRESHOLD_MS = 1000;
/** Limits of the thread's heap. Without them, V8 reserves more for it than it ever needs. */
const RESOURCE_LIMITS = { maxYoungGenerationSizeMb: 1, maxOldGenerationSizeMb: 16 } as const;
/** Limit of logged frames, innermost first. */
const MAX_FRAMES = 15;

export interface BlockWatchOptions {
  /** Must be running. */
  readonly eventLoop: Pick<EventLoopMonitor, 'lastBeat' | 'beatMs'>;
  readonly log: Logger;
  /** The packages of the loaded drivers, by name. */
  readonly driverPackages: () => NodepoolConfig['driverPackages'];
}

export class BlockWatch {
  private worker: Worker | undefined;

  constructor(private readonly options: BlockWatchOptions) {}

  start(): void {
    const { log, eventLoop } = this.options;
    const { lastBeat, beatMs } = eventLoop;
    const workerData: BlockWatchData = { lastBeat, beatMs, thresholdMs: THRESHOLD_MS };
    this.worker = new Worker(join(__dirname, 'block-watch-worker.js'), {
      workerData,
      resourceLimits: RESOURCE_LIMITS,
    });
    this.worker.on('message', (report: BlockReport) => this.report(report));
    this.worker.on('error', (error) => log.warn('Blocks of the event loop cannot be detected', { error }));
    this.worker.unref();
  }

  async stop(): Promise<void> {
    await this.worker?.terminate();
  }

  private report({ blockedMs, frames }: BlockReport): void {
    const files = frames.map((frame) => (frame.url.startsWith('file:') ? fileURLToPath(frame.url) : frame.url));
    const fields = {
      seconds: Math.round(blockedMs / 100) / 10,
      stack: frames
        .slice(0, MAX_FRAMES)
        .map((frame, index) => `${frame.name === '' ? '(anonymous)' : frame.name} (${files[index]}:${frame.line})`),
    };
    const driver = this.driverIn(files);
    this.options.log.warn(blockMessage(files, driver), { ...(driver === undefined ? {} : { driver }), ...fields });
  }

  /** Returns the driver of the innermost frame that belongs to a driver. */
  private driverIn(files: readonly string[]): string | undefined {
    const drivers = [...(this.options.driverPackages() ?? [])].map(([driver, { folder }]) => ({
      driver,
      // Stacks contain paths without symbolic links.
      folder: existsSync(folder) ? realpathSync(folder) : folder,
    }));
    for (const file of files) {
      const found = drivers.find(({ folder }) => file.startsWith(`${folder}/`));
      if (found !== undefined) return found.driver;
    }
    return undefined;
  }
}

/** Returns the message about a block. `files`: those of the frames, innermost first. */
export function blockMessage(files: readonly string[], driver: string | undefined): string {
  // The libraries of clouds take a second to load; a machine that is busy, as during a start, needs more.
  if (files.some((file) => file.startsWith('node:internal/modules/'))) {
    return 'The event loop was blocked while code was loaded, which happens once';
  }
  return driver === undefined
    ? 'The event loop was blocked'
    : 'A driver blocked the event loop, and with it every provider';
}

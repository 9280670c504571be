/** The progress of an upload: logged at intervals, and written to its record for `image-list`. */

import { reasonOf, type Clock, type Logger } from '@nodepool/core';
import type { UploadHandle } from '@nodepool/store';

/** Interval (ms) between lines of progress. */
const LOG_INTERVAL_MS = 60_000;
/** Minimum step (percent) between writes to the record. */
const STEP_PERCENT = 10;

export class UploadProgress {
  private readonly startedAt: number;
  private loggedAt: number;
  private recorded = 0;
  private writing: Promise<void> | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly log: Logger,
    private readonly handle: UploadHandle,
  ) {
    this.startedAt = clock.monotonic();
    this.loggedAt = this.startedAt;
  }

  /** Takes the number of bytes sent so far and the total. Never throws. */
  report(sentBytes: number, totalBytes: number): void {
    const now = this.clock.monotonic();
    if (now - this.loggedAt >= LOG_INTERVAL_MS) {
      this.loggedAt = now;
      const seconds = Math.round((now - this.startedAt) / 1000);
      this.log.info('The upload is still running', { sent_bytes: sentBytes, bytes: totalBytes, seconds });
    }
    const percent = totalBytes > 0 ? Math.floor((100 * sentBytes) / totalBytes) : 0;
    if (this.writing !== undefined || percent < this.recorded + STEP_PERCENT) return;
    this.recorded = percent;
    this.writing = this.write(percent);
  }

  async settled(): Promise<void> {
    await this.writing;
  }

  /** Writes the progress. Never rejects: an upload can succeed without it, and the lock itself reports its loss. */
  private async write(progress: number): Promise<void> {
    try {
      await this.handle.update({ progress });
    } catch (error) {
      this.log.debug('The progress of an upload could not be recorded', { reason: reasonOf(error) });
    }
    this.writing = undefined;
  }
}

/**
 * The most recent warnings and errors of a launcher's log, for its status page. Repeated failures are counted instead
 * of listed again, so that a cloud that keeps failing does not displace other failures.
 */

import { reasonOf, type Clock, type LogFields, type Logger } from '@nodepool/core';

export interface RecentFailure {
  readonly level: 'warning' | 'error';
  /** Message of the log line, the same for all failures of one kind. */
  readonly message: string;
  /** Message of the error. */
  readonly reason: string | undefined;
  /** Times of the first and the last occurrence, in milliseconds since the epoch. */
  readonly first: number;
  readonly last: number;
  readonly times: number;
  /** Fields of the last log line. */
  readonly fields: LogFields;
}

/** Fields that distinguish failures with the same message. */
const SUBJECT = ['provider', 'pool', 'label', 'task'] as const;
/** Fields that contain the reason if there is no error. */
const REASONS = ['reason', 'warning'] as const;
const MAX_KEPT = 30;

export class RecentFailures {
  /** Failures in the order of their last occurrence. */
  private readonly kept = new Map<string, RecentFailure>();

  constructor(private readonly clock: Clock) {}

  /** Returns a logger that forwards to `log` and also keeps warnings and errors here. */
  watch(log: Logger): Logger {
    return new WatchedLogger(this, log, []);
  }

  /** Returns the kept failures, newest first. */
  list(): readonly RecentFailure[] {
    return [...this.kept.values()].reverse();
  }

  /** Keeps a warning or an error. */
  keep(level: RecentFailure['level'], message: string, error: unknown, fields: LogFields): void {
    const reason = error === undefined ? reasonIn(fields) : reasonOf(error);
    const key = JSON.stringify([level, message, reason ?? '', ...SUBJECT.map((name) => text(fields[name]))]);
    const now = this.clock.now();
    const before = this.kept.get(key);
    this.kept.delete(key);
    const { first = now, times = 0 } = before ?? {};
    this.kept.set(key, { level, message, reason, first, last: now, times: times + 1, fields });
    for (const oldest of this.kept.keys()) {
      if (this.kept.size <= MAX_KEPT) break;
      this.kept.delete(oldest);
    }
  }
}

class WatchedLogger implements Logger {
  /** `common`: the fields that `with` has added, which only failures join. */
  constructor(
    private readonly failures: RecentFailures,
    private readonly log: Logger,
    private readonly common: readonly LogFields[],
  ) {}

  debug(message: string, fields?: LogFields): void {
    this.log.debug(message, fields);
  }

  info(message: string, fields?: LogFields): void {
    this.log.info(message, fields);
  }

  warn(message: string, fields?: LogFields): void {
    this.log.warn(message, fields);
    this.failures.keep('warning', message, fields?.error, this.joined(fields));
  }

  error(message: string, error?: unknown, fields?: LogFields): void {
    this.log.error(message, error, fields);
    this.failures.keep('error', message, error, this.joined(fields));
  }

  with(fields: LogFields): Logger {
    return new WatchedLogger(this.failures, this.log.with(fields), [...this.common, fields]);
  }

  named(name: string): Logger {
    return new WatchedLogger(this.failures, this.log.named(name), this.common);
  }

  private joined(fields: LogFields | undefined): LogFields {
    return Object.assign({}, ...this.common, fields) as LogFields;
  }
}

function reasonIn(fields: LogFields): string | undefined {
  const reasons = REASONS.map((name) => text(fields[name])).filter((each) => each !== '');
  const { problems } = fields;
  if (Array.isArray(problems)) reasons.push(...problems.map(text).slice(0, 1));
  return reasons[0];
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

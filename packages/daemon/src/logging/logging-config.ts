/** The model of a logging configuration (levels, formats, destinations), and the lookup of a logger's rule. */

import type { LogFileOptions } from './log-file.js';

/** Thresholds for winston, which writes a line if its level is not a greater number than the threshold. */
export const LEVELS = { off: 0, error: 1, warn: 2, info: 3, debug: 4 } as const;
/** The lowest level that is written; `off` writes nothing. */
export type LogThreshold = keyof typeof LEVELS;
export type LogLevel = Exclude<LogThreshold, 'off'>;

/** Returns the threshold that writes fewer lines. */
export function stricter(a: LogThreshold, b: LogThreshold): LogThreshold {
  return LEVELS[a] < LEVELS[b] ? a : b;
}

/** `text`: lines in the format of Python's logging; `json`: one object per line. */
export type LogFormat = 'text' | 'json';

export type LogDestination =
  | {
      readonly kind: 'console';
      readonly stream: 'stdout' | 'stderr';
      readonly threshold: LogThreshold;
      readonly format: LogFormat;
    }
  | (LogFileOptions & {
      readonly kind: 'file';
      readonly threshold: LogThreshold;
      readonly format: LogFormat;
    });

/** The settings of a logger and those below it (`a.b` is below `a`), unless these have a rule of their own. */
export interface LoggerRule {
  /** Lowest level that is logged; undefined if it is inherited from the logger above. */
  readonly threshold: LogThreshold | undefined;
  /** Destinations in addition to those of the loggers above. */
  readonly destinations: readonly LogDestination[];
  /** If false, the destinations of the loggers above are not used. */
  readonly propagate: boolean;
}

export interface LoggingConfig {
  /** The rule of all loggers; its `propagate` has no effect. */
  readonly root: LoggerRule;
  /** Rules by logger name. */
  readonly loggers: ReadonlyMap<string, LoggerRule>;
}

export interface LoadedLogging {
  readonly config: LoggingConfig;
  /** Settings of the file without effect, with the reasons; to be logged as warnings. */
  readonly notices: readonly string[];
}

/** Returns a configuration that writes everything from this level on to one console. */
export function consoleLogging(
  threshold: LogThreshold,
  format: LogFormat = 'text',
  stream: 'stdout' | 'stderr' = 'stderr',
): LoggingConfig {
  const destination: LogDestination = { kind: 'console', stream, threshold: 'debug', format };
  return { root: { threshold, destinations: [destination], propagate: false }, loggers: new Map() };
}

export interface EffectiveRule {
  readonly threshold: LogThreshold;
  readonly destinations: readonly LogDestination[];
}

/**
 * Resolves the rule of a name through its parents (`a.b.c`, `a.b`, `a`, root): the nearest threshold, and all
 * destinations up to where `propagate` is false.
 */
export function effectiveRule(config: LoggingConfig, name: string): EffectiveRule {
  let threshold: LogThreshold | undefined;
  const destinations = new Set<LogDestination>();
  let propagating = true;
  for (const rule of rulesUpwards(config, name)) {
    threshold ??= rule.threshold;
    if (propagating) for (const destination of rule.destinations) destinations.add(destination);
    propagating &&= rule.propagate;
  }
  return { threshold: threshold ?? 'info', destinations: [...destinations] };
}

function* rulesUpwards(config: LoggingConfig, name: string): Iterable<LoggerRule> {
  for (let rest = name; rest !== ''; rest = rest.slice(0, Math.max(0, rest.lastIndexOf('.')))) {
    const rule = config.loggers.get(rest);
    if (rule !== undefined) yield rule;
  }
  yield config.root;
}

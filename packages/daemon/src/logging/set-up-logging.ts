/** Sets up logging from the options `-l FILE` and `-d` of every program. */

import { createLogger, type LoggerOptions, type RootLogger } from './create-logger.js';
import { consoleLogging } from './logging-config.js';
import { loadLoggingConfig } from './logging-file.js';

export interface LoggingSetup extends Omit<LoggerOptions, 'config'> {
  /** `-l FILE`. */
  readonly file: string | undefined;
  /** `-d`: logs everything to the console; a logging file overrides it. */
  readonly debug: boolean;
}

/** Creates the logger of a program. Rejects with `LoggingConfigError` or `LogFileError`. */
export async function setUpLogging(setup: LoggingSetup): Promise<RootLogger> {
  if (setup.file === undefined)
    return createLogger({ ...setup, config: consoleLogging(setup.debug ? 'debug' : 'info') });
  const { config, notices } = await loadLoggingConfig(setup.file);
  const log = createLogger({ ...setup, config });
  for (const notice of notices) log.warn('Part of the logging configuration has no effect', { notice });
  return log;
}

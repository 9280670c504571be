import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Clock } from '@nodepool/core';
import { createLogger, type RootLogger } from '../src/logging/create-logger.js';
import {
  consoleLogging,
  type LogFormat,
  type LoggingConfig,
  type LogThreshold,
} from '../src/logging/logging-config.js';
import { loadLoggingConfig, LoggingConfigError, parseLoggingConfig } from '../src/logging/logging-file.js';
import { setUpLogging } from '../src/logging/set-up-logging.js';

const START = Date.UTC(2026, 10, 20, 13, 4, 49, 123);

class ManualClock implements Clock {
  time = START;
  now = (): number => this.time;
  monotonic = (): number => this.time;
  schedule = (): { cancel(): void } => ({ cancel: () => undefined });
}

/** Logs, closes the logger, and returns the lines written to stderr. */
async function logged(threshold: LogThreshold, format: LogFormat, use: (log: RootLogger) => void): Promise<string[]> {
  const stderr = new PassThrough();
  const log = createLogger({ config: consoleLogging(threshold, format), clock: new ManualClock(), stderr });
  use(log);
  await log.close();
  return linesOf(stderr);
}

/** Parses JSON lines. */
function parsed(lines: readonly string[]): Record<string, unknown>[] {
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

function linesOf(stream: PassThrough): string[] {
  const text = String(stream.read() ?? '');
  return text === '' ? [] : text.replace(/\n$/, '').split('\n');
}

describe('a console', () => {
  it('writes the lines of one turn of the event loop at once, and does not buffer more', async () => {
    const stderr = new PassThrough();
    const written: string[] = [];
    stderr.on('data', (chunk) => written.push(String(chunk)));
    const log = createLogger({ config: consoleLogging('info', 'text'), clock: new ManualClock(), stderr });
    log.info('one');
    log.info('two');
    await new Promise((resolve) => setImmediate(resolve));
    log.info('three');
    await new Promise((resolve) => setImmediate(resolve));
    expect(written.map((text) => text.split('\n').length - 1)).toEqual([2, 1]);
    await log.close();
  });
});

describe('a log line as text', () => {
  it('has time, level, name, message and fields', async () => {
    const [line] = await logged('info', 'text', (log) =>
      log.named('nodepool.launcher').info('Node is ready', { node_id: '0000000001', seconds: 3 }),
    );
    expect(line).toMatch(
      /^2026-11-\d\d \d\d:\d\d:49,123 INFO nodepool\.launcher: Node is ready {2}node_id=0000000001 seconds=3$/,
    );
  });

  it('shows an error with its stack and its causes, indented', async () => {
    const error = new Error('launch failed', { cause: new TypeError('no such flavor') });
    const lines = await logged('info', 'text', (log) => log.error('It failed', error, { node_id: '1' }));
    expect(lines[0]).toMatch(/ERROR nodepool: It failed {2}node_id=1 reason="launch failed"$/);
    expect(lines[1]).toBe('    Error: launch failed');
    expect(lines).toContain('    caused by TypeError: no such flavor');
    expect(lines.slice(1).every((line) => line.startsWith('    '))).toBe(true);
  });

  it('is one line for any message and fields', async () => {
    const lines = await logged('info', 'text', (log) =>
      log.info('a\nb\u001b[2J', { comment: 'x y="z"\n2026-11-20 00:00:00,000 ERROR forged', empty: '' }),
    );
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('a\\nb\\u001b[2J');
    expect(lines[0]).toContain(String.raw`comment="x y=\"z\"\n2026-11-20 00:00:00,000 ERROR forged" empty=""`);
  });

  it.each(['text', 'json'] as const)('rounds numbers (%s)', async (format) => {
    const [line = ''] = await logged('info', format, (log) =>
      log.info('x', { a: 0.6066802504983356, b: 1234.5678, c: 1795764159413, d: { e: 0.000123456 }, f: NaN }),
    );
    const texts = {
      text: 'a=0.607 b=1234.568 c=1795764159413 d={"e":0.000123} f=NaN',
      json: '"a":0.607,"b":1234.568,',
    };
    expect(line).toContain(texts[format]);
  });

  it('leaves out fields that are undefined', async () => {
    const [line] = await logged('info', 'text', (log) => log.info('x', { a: undefined, b: null }));
    expect(line).toMatch(/: x {2}b=null$/);
  });
});

describe('a log line as JSON', () => {
  it('is one object with the fields beside the message', async () => {
    const [line] = await logged('info', 'json', (log) => log.with({ provider: 'cloud' }).warn('Slow', { calls: 7n }));
    expect(JSON.parse(line ?? '')).toEqual({
      time: new Date(START).toISOString(),
      level: 'warn',
      logger: 'nodepool',
      message: 'Slow',
      provider: 'cloud',
      calls: '7',
    });
  });

  it('never lets a field replace a standard member', async () => {
    const [line] = await logged('info', 'json', (log) =>
      log.error('Real', new Error('e'), { message: 'fake', error: 'field' }),
    );
    expect(JSON.parse(line ?? '')).toMatchObject({
      message: 'Real',
      message_: 'fake',
      error: { message: 'e' },
      error_: 'field',
    });
  });

  it('has the error with code, stack and causes', async () => {
    const cause = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
    const lines = await logged('info', 'json', (log) =>
      log.error('x', new AggregateError([cause], 'all failed', { cause })),
    );
    expect(parsed(lines)[0]?.['error']).toMatchObject({
      name: 'AggregateError',
      message: 'all failed',
      stack: expect.stringContaining('all failed'),
      cause: { message: 'refused', code: 'ECONNREFUSED' },
      errors: [{ message: 'refused' }],
    });
  });

  it.each<[string, () => unknown]>([
    [
      'a cycle',
      () => {
        const cycle: { self?: unknown } = {};
        cycle.self = cycle;
        return cycle;
      },
    ],
    ['a function', () => () => 1],
    ['a map', () => new Map([[{}, new Set([1])]])],
    [
      'a throwing toJSON',
      () => ({
        toJSON: () => {
          throw new Error('no');
        },
      }),
    ],
  ])('accepts %s in a field', async (_name, make) => {
    const lines = await logged('info', 'json', (log) => log.info('x', { odd: make() }));
    expect(JSON.parse(lines[0] ?? '')).toHaveProperty('message', 'x');
  });

  it('accepts any thrown value', async () => {
    const errors: unknown[] = ['text', null, 7, { some: 'object' }, Object.create(null)];
    const loop = new Error('loop');
    loop.cause = loop;
    for (const format of ['json', 'text'] as const) {
      const lines = await logged('info', format, (log) =>
        [...errors, loop].forEach((error) => log.error('caught', error)),
      );
      expect(lines.filter((line) => line.includes('caught'))).toHaveLength(6);
    }
  });
});

describe('levels', () => {
  it('pass lines of at least their severity', async () => {
    const use = (log: RootLogger): void => {
      log.debug('d');
      log.info('i');
      log.warn('w');
      log.error('e');
    };
    const messages = async (threshold: LogThreshold): Promise<unknown[]> =>
      parsed(await logged(threshold, 'json', use)).map((line) => line['message']);
    expect(await messages('debug')).toEqual(['d', 'i', 'w', 'e']);
    expect(await messages('info')).toEqual(['i', 'w', 'e']);
    expect(await messages('warn')).toEqual(['w', 'e']);
    expect(await messages('error')).toEqual(['e']);
    expect(await messages('off')).toEqual([]);
  });

  it('are found by name, the nearest ancestor first', async () => {
    const { config } = await parseLoggingConfig(
      '{level: warn, loggers: {nodepool.zookeeper: debug, nodepool.zookeeper.lock: off}}',
      'f',
    );
    const stderr = new PassThrough();
    const log = createLogger({ config, stderr });
    for (const name of [
      'nodepool',
      'nodepool.zookeeperish',
      'nodepool.zookeeper',
      'nodepool.zookeeper.session',
      'nodepool.zookeeper.lock',
    ]) {
      log.named(name).debug(`from ${name}.`);
    }
    await log.close();
    const lines = linesOf(stderr);
    expect(lines).toHaveLength(2);
    expect(lines[0]).toContain('from nodepool.zookeeper.');
    expect(lines[1]).toContain('from nodepool.zookeeper.session.');
  });

  it('do not evaluate the fields of a suppressed line', async () => {
    let looked = false;
    await logged('info', 'json', (log) =>
      log.debug('x', {
        get field() {
          looked = true;
          return 1;
        },
      }),
    );
    expect(looked).toBe(false);
  });
});

describe('log files', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'nodepool-log-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  const yaml = async (text: string): Promise<LoggingConfig> => (await parseLoggingConfig(text, 'f')).config;

  it('are appended to, and complete once the logger is closed', async () => {
    const file = join(folder, 'l.log');
    await writeFile(file, 'earlier\n');
    const log = createLogger({ config: await yaml(`destinations: [{file: ${file}}]`) });
    for (let i = 0; i < 3000; i += 1) log.info(`line ${i}`);
    await log.close();
    const lines = (await readFile(file, 'utf8')).trimEnd().split('\n');
    expect(lines).toHaveLength(3001);
    expect(lines[0]).toBe('earlier');
    expect(lines[3000]).toContain('line 2999');
  });

  it('have their own level and format', async () => {
    const file = join(folder, 'l.log');
    const stderr = new PassThrough();
    const log = createLogger({
      config: await yaml(
        `{level: debug, destinations: [{console: stderr, level: error}, {file: ${file}, format: json}]}`,
      ),
      stderr,
    });
    log.debug('fine');
    log.error('bad');
    await log.close();
    expect(linesOf(stderr).filter((line) => line.includes('nodepool:'))).toHaveLength(1);
    expect(parsed((await readFile(file, 'utf8')).trimEnd().split('\n')).map((line) => line['message'])).toEqual([
      'fine',
      'bad',
    ]);
  });

  it('are rejected at once with the reason when they cannot be written', async () => {
    const file = join(folder, 'missing', 'l.log');
    const config = await yaml(`destinations: [{file: ${file}}]`);
    expect(() => createLogger({ config })).toThrow(
      new RegExp(`cannot write the log file ${file}: its folder does not exist; check its folder`),
    );
  });

  it('are rotated when they get too large, without loss of a line', async () => {
    const file = join(folder, 'l.log');
    const fits = 'x'.repeat(470);
    const stderr = new PassThrough();
    for (const name of ['a', 'b', 'c', 'd']) {
      // Closing after each line makes it a separate batch.
      const one = createLogger({
        config: await yaml(`destinations: [{file: ${file}, max-bytes: 500, keep: 3}]`),
        stderr,
      });
      one.info(`${name}${fits}`);
      await one.close();
    }
    const firstLetters = async (path: string): Promise<string[]> =>
      (await readFile(path, 'utf8'))
        .trimEnd()
        .split('\n')
        .map((line) => line.replace(/^.*: (.).*$/, '$1'));
    expect(await firstLetters(`${file}.1`)).toEqual(['d']);
    expect(await firstLetters(`${file}.2`)).toEqual(['c']);
    expect(await readFile(file, 'utf8')).toBe('');
    await expect(readFile(`${file}.3`)).rejects.toThrow('ENOENT');
    expect(linesOf(stderr)).toEqual([]);
  });

  it('contain every line once, in order, for any number of rotations', async () => {
    const file = join(folder, 'l.log');
    const log = createLogger({ config: await yaml(`destinations: [{file: ${file}, max-bytes: 2000, keep: 100}]`) });
    for (let index = 0; index < 3000; index += 1) {
      log.info(`line ${index}`);
      if (index % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await log.close();
    const names = (await readdir(folder)).sort((a, b) => Number(b.split('.')[2] ?? 0) - Number(a.split('.')[2] ?? 0));
    const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
    const numbers = [...texts.join('').matchAll(/: line (\d+)$/gm)].map(([, number]) => Number(number));
    expect(names.length).toBeGreaterThan(1);
    expect(numbers).toEqual(Array.from({ length: 3000 }, (_, index) => index));
  });

  it('do not stop the program when the disk is full, and report it once', async () => {
    const stderr = new PassThrough();
    const log = createLogger({ config: await yaml('destinations: [{file: /dev/full}]'), stderr });
    log.info('lost');
    log.info('lost too');
    await log.close();
    expect(linesOf(stderr)).toEqual([
      expect.stringMatching(/^cannot write the log file \/dev\/full: no space left on device;/),
    ]);
  });
});

describe('a logging configuration of Python', () => {
  const PYTHON = `
version: 1
disable_existing_loggers: false
formatters:
  simple: {format: '%(asctime)s %(levelname)s %(name)s: %(message)s'}
handlers:
  console: {class: logging.StreamHandler, level: WARNING, stream: ext://sys.stdout, formatter: simple}
  debug: {class: logging.handlers.TimedRotatingFileHandler, level: DEBUG, filename: FOLDER/debug.log, when: D, backupCount: 30}
  normal: {class: logging.handlers.RotatingFileHandler, level: INFO, filename: FOLDER/launcher.log, maxBytes: 1000000, backupCount: 4}
loggers:
  nodepool: {level: DEBUG, handlers: [debug, normal], propagate: 0}
  nodepool.image.build: {level: ERROR}
  kazoo: {level: INFO, handlers: [debug]}
root: {level: WARNING, handlers: [console]}
`;

  it('preserves its levels, files, consoles and propagation', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'nodepool-log-'));
    const stdout = new PassThrough();
    const { config } = await parseLoggingConfig(PYTHON.replaceAll('FOLDER', folder), 'f');
    const log = createLogger({ config, stdout });
    log.debug('d');
    log.info('i');
    log.named('nodepool.image.build').warn('hidden');
    log.named('other').warn('to the root');
    await log.close();
    const messages = async (name: string): Promise<string[]> =>
      (await readFile(join(folder, name), 'utf8'))
        .trimEnd()
        .split('\n')
        .map((line) => line.replace(/^.*: /, ''));
    expect(await messages('debug.log')).toEqual(['d', 'i']);
    expect(await messages('launcher.log')).toEqual(['i']);
    expect(linesOf(stdout).map((line) => line.replace(/^.*: /, ''))).toEqual(['to the root']);
    await rm(folder, { recursive: true });
  });

  it('reports settings without effect', async () => {
    const { notices } = await parseLoggingConfig(PYTHON.replace('version: 1', 'version: 1\nfilters: {}'), 'log.yaml');
    expect(notices).toEqual([
      'log.yaml: filters has no effect',
      expect.stringContaining('loggers kazoo: have no effect'),
    ]);
  });

  it('skips and reports missing handlers', async () => {
    const text = 'version: 1\nhandlers: {sys: {class: logging.handlers.SysLogHandler}}\nroot: {handlers: [sys]}';
    const { config, notices } = await parseLoggingConfig(text, 'f');
    expect(config.root.destinations).toEqual([]);
    expect(notices).toEqual([expect.stringContaining('handler sys: logging.handlers.SysLogHandler')]);
  });

  it('writes JSON when its formatter does', async () => {
    const text = `version: 1
formatters: {j: {class: pythonjsonlogger.jsonlogger.JsonFormatter}}
handlers: {c: {class: logging.StreamHandler, formatter: j}}
root: {handlers: [c], level: INFO}`;
    const { config, notices } = await parseLoggingConfig(text, 'f');
    expect(config.root.destinations).toEqual([
      { kind: 'console', stream: 'stderr', threshold: 'debug', format: 'json' },
    ]);
    expect(notices).toEqual([]);
  });
});

describe('a level', () => {
  it.each([
    ['WARN', 'warn'],
    ['warning', 'warn'],
    ['CRITICAL', 'error'],
    ['15', 'info'],
    ['off', 'off'],
    ['NOTSET', 'debug'],
    ['0', 'debug'],
    ['~', 'debug'],
  ])('%s of Python means %s', async (level, threshold) => {
    const text = `{version: 1, handlers: {c: {class: logging.StreamHandler, level: ${level}}}, root: {handlers: [c]}}`;
    const { config } = await parseLoggingConfig(text, 'f');
    expect(config.root.destinations).toMatchObject([{ threshold }]);
  });
});

describe('an invalid logging configuration', () => {
  it.each([
    ['level: loud', 'log.yaml:1:8: level: expected "debug", "info", "warn"'],
    ['colour: red', 'colour: expected one of the keys destinations, format, level or loggers, found an unknown key'],
    ['loggers: [a]', 'loggers: expected a mapping, found a list of 1'],
    ['loggers: {nodepool: 7}', 'loggers.nodepool: expected "debug", "info"'],
    ['destinations: here', 'destinations: expected a list, found "here"'],
    ['destinations: [x]', 'destinations[0]: expected a mapping, found "x"'],
    ['destinations: [{}]', 'destinations[0]: expected exactly one of the keys console or file, found none of them'],
    ['destinations: [{file: x, keep: -1}]', 'destinations[0].keep: expected a whole number of at least 1, found -1'],
    ['destinations: [{console: stderr, keep: 2}]', 'property file when property keep is present'],
    ['version: 2', 'log.yaml:1:10: version: expected 1, found 2'],
    ['{version: 1, root: {level: LOUD}}', 'root.level: expected "debug"'],
    ['{version: 1, root: {handlers: x}}', 'root.handlers: expected a list, found "x"'],
    ['{version: 1, root: {handlers: [x]}}', 'root.handlers[0]: expected the name of one of the handlers, found "x"'],
    ['{version: 1, loggers: {nodepool: {handlers: [x]}}}', 'loggers.nodepool.handlers[0]: expected the name of one'],
    [
      '{version: 1, handlers: {f: {class: logging.FileHandler}}}',
      'handlers.f.filename: expected a string, found nothing',
    ],
    ['{version: 1, handlers: {f: {}}}', 'handlers.f.class: expected a string, found nothing'],
    ['- a', 'log.yaml:1:1: expected a mapping, found a list of 1'],
    ['', 'expected a mapping'],
    ['a: [', 'log.yaml:1:5: expected valid YAML'],
    ['[loggers]\nkeys=root', 'it is an ini file'],
  ])('is rejected: %j', async (text, message) => {
    const error: unknown = await parseLoggingConfig(text, 'log.yaml').catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(LoggingConfigError);
    expect(String(error)).toContain('the logging configuration log.yaml cannot be used');
    expect(String(error)).toContain(message);
  });

  it('is reported with all its problems at once', async () => {
    await expect(parseLoggingConfig('{level: loud, format: pretty}', 'f')).rejects.toThrow(/level: .*\n.*format: /);
  });

  it('is reported with file and reason when it is missing', async () => {
    await expect(loadLoggingConfig('/nonexistent/log.yaml')).rejects.toThrow(
      /\/nonexistent\/log\.yaml.*\n.*there is no such file/,
    );
  });
});

describe('the log of a program', () => {
  it('has level info on stderr, and all levels with -d', async () => {
    for (const debug of [false, true]) {
      const stderr = new PassThrough();
      const log = await setUpLogging({ file: undefined, debug, stderr });
      log.debug('d');
      log.info('i');
      await log.close();
      expect(linesOf(stderr)).toHaveLength(debug ? 2 : 1);
    }
  });

  it('reports settings of the file without effect', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'nodepool-log-'));
    const file = join(folder, 'log.yaml');
    await writeFile(
      file,
      'version: 1\nfilters: {}\nhandlers: {c: {class: logging.StreamHandler}}\nroot: {handlers: [c]}',
    );
    const stderr = new PassThrough();
    const log = await setUpLogging({ file, debug: false, stderr });
    await log.close();
    expect(linesOf(stderr)).toEqual([expect.stringContaining('filters has no effect')]);
    await rm(folder, { recursive: true });
  });
});

import { describe, expect, it } from '@jest/globals';
import { silentLogger, type Logger } from '@nodepool/core';
import { VirtualClock } from '@nodepool/core/testing';
import { RecentFailures } from '../src/index.js';

describe('recent failures', () => {
  it('are the warnings and errors of the log, newest first, with the fields of their loggers', () => {
    const failures = new RecentFailures(new VirtualClock());
    const log = failures.watch(silentLogger).named('nodepool.launcher').with({ provider: 'cloud' });
    log.info('Starting provider');
    log.warn('The limits could not be read', { error: new Error('503') });
    log.with({ pool: 'main' }).error('The driver failed', new Error('no such flavour'), { label: 'small' });
    expect(failures.list()).toEqual([
      expect.objectContaining({
        level: 'error',
        message: 'The driver failed',
        reason: 'no such flavour',
        fields: expect.objectContaining({ provider: 'cloud', pool: 'main', label: 'small' }),
      }),
      expect.objectContaining({ level: 'warning', reason: '503', times: 1 }),
    ]);
  });

  it('count repetitions by provider, pool, label and reason', async () => {
    const clock = new VirtualClock();
    const failures = new RecentFailures(clock);
    const log = failures.watch(silentLogger);
    const fail = (provider: string, node: string): void =>
      log.warn('Launch attempt failed', { provider, node_id: node, error: new Error('no answer') });
    const begin = clock.now();
    fail('one', '1');
    fail('two', '2');
    await clock.advance(5000);
    fail('one', '3');
    expect(failures.list()).toEqual([
      expect.objectContaining({
        times: 2,
        first: begin,
        last: begin + 5000,
        fields: expect.objectContaining({ node_id: '3' }),
      }),
      expect.objectContaining({ times: 1, last: begin }),
    ]);
  });

  it('are limited in number', () => {
    const failures = new RecentFailures(new VirtualClock());
    const log = failures.watch(silentLogger);
    for (let number = 0; number < 1000; number += 1) log.warn('It failed', { label: `label-${number}` });
    expect(failures.list()).toHaveLength(30);
    expect(failures.list()[0]?.fields.label).toBe('label-999');
  });

  it('are also logged unchanged', () => {
    const lines: unknown[] = [];
    const inner: Logger = {
      ...silentLogger,
      warn: (...line) => void lines.push(['warn', ...line]),
      error: (...line) => void lines.push(['error', ...line]),
      info: (...line) => void lines.push(['info', ...line]),
      debug: (...line) => void lines.push(['debug', ...line]),
    };
    const log = new RecentFailures(new VirtualClock()).watch(inner);
    const error = new Error('why');
    log.debug('a', { x: 1 });
    log.info('b');
    log.warn('c', { error });
    log.error('d', error, { y: 2 });
    expect(lines).toEqual([
      ['debug', 'a', { x: 1 }],
      ['info', 'b', undefined],
      ['warn', 'c', { error }],
      ['error', 'd', error, { y: 2 }],
    ]);
  });
});

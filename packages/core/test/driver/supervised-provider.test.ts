/** Log lines of a provider that fails to start. */

import { expect, it } from '@jest/globals';
import { VirtualClock } from '@nodepool/core/testing';
import {
  AuthError,
  silentLogger,
  silentMetrics,
  SupervisedProvider,
  TaskSupervisor,
  type LogFields,
  type Logger,
  type Provider,
} from '../../src/index.js';
import { seededRandom } from '../../src/testing/index.js';

it('a stack is logged once for an unexpected error, and never for an error that the driver explains', async () => {
  const failures = [
    new AuthError('the cloud refuses the password'),
    new AuthError('the cloud refuses the password'),
    new TypeError('x is undefined'),
    new TypeError('x is undefined'),
    new TypeError('y is undefined'),
  ];
  const lines: { readonly stack: boolean; readonly reason: unknown }[] = [];
  const waits: unknown[] = [];
  const log: Logger = {
    ...silentLogger,
    error: (_message, error, fields: LogFields = {}) => {
      lines.push({ stack: error !== undefined, reason: fields['reason'] });
      waits.push(fields['retry_in_ms']);
    },
  };
  const provider = {
    config: { name: 'cloud' },
    start: () => {
      const failure = failures.shift();
      return failure === undefined ? Promise.resolve() : Promise.reject(failure);
    },
  } as Pick<Provider, 'start'> as Provider;
  const clock = new VirtualClock();
  const tasks = new TaskSupervisor(clock, () => undefined);
  const context = { clock, random: seededRandom(1), log, tasks, metrics: silentMetrics };
  const started = new SupervisedProvider(provider, context).start({}, new AbortController().signal);
  await clock.advance(600_000);
  expect(await started).toBe(true);
  expect(waits.every(Number.isInteger)).toBe(true);
  expect(lines).toEqual([
    { stack: false, reason: 'the cloud refuses the password' },
    { stack: false, reason: 'the cloud refuses the password' },
    { stack: true, reason: undefined },
    { stack: false, reason: 'x is undefined' },
    { stack: true, reason: undefined },
  ]);
});

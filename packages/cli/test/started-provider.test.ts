/** Queries of a cloud by commands: what is left of the provider afterwards. */

import { expect, it } from '@jest/globals';
import { silentLogger, systemClock, systemRandom, type Provider } from '@nodepool/core';
import { withStartedProvider } from '../src/started-provider.js';

const context = {
  clock: systemClock,
  random: systemRandom,
  log: silentLogger,
  interrupted: new AbortController().signal,
};

/** A provider whose work ends in `join` only, like the watches of a driver. */
function watchingProvider(events: string[]): Provider {
  const provider = {
    config: { name: 'cloud', driver: 'fake' },
    start: () => Promise.resolve(void events.push('start')),
    stop: () => void events.push('stop'),
    join: () => Promise.resolve(void events.push('end')),
  };
  return provider as unknown as Provider;
}

it('a query waits for the end of the provider, whose work would keep the process alive', async () => {
  const events: string[] = [];
  const answer = withStartedProvider(context, watchingProvider(events), 1000, () => Promise.resolve('answer'));
  await expect(answer).resolves.toBe('answer');
  expect(events).toEqual(['start', 'stop', 'end']);
});

it('a query that fails ends the provider, too, and keeps its error', async () => {
  const events: string[] = [];
  const answer = withStartedProvider(context, watchingProvider(events), 1000, () => Promise.reject(new Error('503')));
  await expect(answer).rejects.toThrow('503');
  expect(events).toEqual(['start', 'stop', 'end']);
});

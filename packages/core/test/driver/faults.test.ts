/** Faults and crashes at any time: no launch creates two instances, and no resource is left behind. */

import { VirtualClock } from '@nodepool/core/testing';
import { describe, expect, it } from '@jest/globals';
import {
  ConflictError,
  ThrottledError,
  TransientError,
  type ExternalId,
  type JsonValue,
  type RandomSource,
} from '../../src/index.js';
import { seededRandom } from '../../src/testing/index.js';
import { ProviderHarness, watch, type Watched } from './provider-harness.js';
import { TinyCloud, type Fault, type Operation } from './tiny-cloud.js';
import { machineDriver, simpleDriver } from './tiny-drivers.js';

function pick<T>(random: RandomSource, from: readonly T[]): T {
  return from[Math.floor(random.next() * from.length)]!;
}

function planFaults(cloud: TinyCloud, random: RandomSource): void {
  const passing: Fault[] = [
    { kind: 'refuse', error: new ThrottledError('slow down', { retryAfterMs: 3000 }) },
    { kind: 'refuse', error: new TransientError('503') },
    { kind: 'lose-answer' },
    { kind: 'hang' },
  ];
  const operations: Operation[] = ['create', 'list', 'delete', 'list'];
  for (let count = 0; count < 8; count += 1) cloud.failNext(pick(random, operations), pick(random, passing));
  cloud.failNext('delete', { kind: 'refuse', error: new ConflictError('the instance is busy') });
}

interface Attempt {
  readonly nodeId: string;
  saved: { readonly externalId: ExternalId | null; readonly machine: JsonValue } | undefined;
}

function launchAll(harness: ProviderHarness, attempts: readonly Attempt[]): Watched<unknown>[] {
  return attempts.map((attempt) =>
    harness.launch({
      nodeId: attempt.nodeId,
      deadline: harness.clock.monotonic() + 120_000,
      saved: attempt.saved?.machine ?? null,
      externalId: attempt.saved?.externalId ?? null,
      save: async (progress) => {
        attempt.saved = progress;
      },
    }),
  );
}

/** Cleans up a node as the launcher does, restarting a deletion that has failed. */
async function cleanUp(harness: ProviderHarness, nodeId: string): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      await harness.cleanUp(nodeId);
      return;
    } catch (error) {
      expect(error).toMatchObject({ code: 'timeout' });
      expect(tries).toBeLessThan(10);
    }
  }
}

describe.each([
  ['state machines', machineDriver],
  ['the simple framework', simpleDriver],
])('launches on %s under faults', (_name, driver) => {
  it.each(Array.from({ length: 30 }, (_, index) => index + 1))(
    'make at most one instance per attempt, and a cleanup leaves none (seed %i)',
    async (seed) => {
      const random = seededRandom(seed);
      const clock = new VirtualClock();
      const cloud = new TinyCloud(clock, { lagMs: random.next() * 3000 });
      planFaults(cloud, random);
      const attempts: Attempt[] = Array.from({ length: 5 }, (_, index) => ({ nodeId: `${index}`, saved: undefined }));

      const first = await new ProviderHarness(clock, driver(cloud)).start();
      const killed = launchAll(first, attempts);
      await clock.advance(random.next() * 12_000);
      first.provider.stop();
      for (const launch of killed) await first.finish(launch).catch(() => undefined);

      await first.finish(watch(first.provider.join()));

      // Launches that had saved nothing are left out: the launcher retries them under another attempt.
      const second = await new ProviderHarness(clock, driver(cloud)).start();
      for (const launch of launchAll(
        second,
        attempts.filter(({ saved }) => saved !== undefined),
      )) {
        await second.finish(launch).catch(() => undefined);
      }
      expect(cloud.calls.create).toBeLessThanOrEqual(5);
      expect(cloud.existing.length).toBeLessThanOrEqual(5);

      for (const { nodeId } of attempts) await cleanUp(second, nodeId);
      expect(cloud.existing).toEqual([]);
      second.provider.stop();
      await second.finish(watch(second.provider.join()));
      expect(clock.pending).toBe(0);
      expect([...first.failures, ...second.failures]).toEqual([]);
    },
  );
});

/** One upload of an image, as the steps of all import methods share it. */

import { isDriverError, sleep, TransientError, DriverError, type Call, type ImageUploadRequest } from '@nodepool/core';
import type { ImageTraits } from './config.js';
import type { Tags } from './identity.js';
import type { ProviderSession } from './session.js';

/** Interval between polls of imports, snapshots and images (ms). */
const POLL_INTERVAL_MS = 15_000;
/** Time limit for the cleanup after an upload (ms). */
const DISCARD_TIMEOUT_MS = 120_000;
/** Time for which EC2 may not know a new resource, and the interval between attempts (ms). */
const LAG = { longestMs: 120_000, intervalMs: 5000 } as const;

/** Repeats an idempotent call after temporary failures. */
export interface Retries {
  <T>(work: () => Promise<T>): Promise<T>;
}

export interface Upload {
  readonly session: ProviderSession;
  readonly request: ImageUploadRequest;
  readonly traits: ImageTraits;
  /** Name of the image in EC2. */
  readonly name: string;
  readonly tags: Tags;
  /** Size of the file (bytes). */
  readonly size: number;
  /** Client token, which makes the repetition of a call harmless. */
  readonly token: string;
  readonly call: Call;
  readonly retries: Retries;
}

/** Repeats a reading until it has a result. Reports progress, so that the builder sees that AWS is at work. */
export async function pollUntil<T>(
  what: string,
  { session: { clock }, call, request, size }: Upload,
  read: () => Promise<T | undefined>,
): Promise<T> {
  while (clock.monotonic() < call.deadline) {
    const result = await read();
    request.progress(size, size);
    if (result !== undefined) return result;
    await sleep(clock, POLL_INTERVAL_MS, call.signal);
  }
  throw new TransientError(`${what} did not end in time`, { outcome: 'unknown' });
}

/** Makes a call that names a new resource. Repeats it while EC2 does not know the resource yet. */
export async function onceKnown<T>({ session: { clock }, call, retries }: Upload, work: () => Promise<T>): Promise<T> {
  const until = clock.monotonic() + LAG.longestMs;
  for (;;) {
    try {
      return await retries(work);
    } catch (error) {
      if (!isDriverError(error) || error.code !== 'not-found' || clock.monotonic() >= until) throw error;
      await sleep(clock, LAG.intervalMs, call.signal);
    }
  }
}

/** Returns a call for the cleanup after an upload, whose own call may have been aborted. */
export function discardingCall({ session: { clock, makeCall }, request: { log } }: Upload): Call {
  return { ...makeCall(), deadline: clock.monotonic() + DISCARD_TIMEOUT_MS, log };
}

export function failed(what: string, reason = 'AWS gives no reason'): DriverError {
  return new DriverError('instance-failed', `${what} has failed: ${reason}`, { outcome: 'applied' });
}

export async function unlessGone(deletion: Promise<unknown>): Promise<void> {
  try {
    await deletion;
  } catch (error) {
    if (!isDriverError(error) || error.code !== 'not-found') throw error;
  }
}

/**
 * Resolves with what an interrupted upload of the same build left; undefined if there is nothing. A failure of the
 * search ends no upload: the file is then uploaded from its beginning.
 */
export async function leftOf<T>({ call }: Upload, search: () => Promise<T | undefined>): Promise<T | undefined> {
  try {
    return await search();
  } catch (error) {
    if (call.signal.aborted) throw error;
    call.log.info('Could not search for the remains of an interrupted upload; uploading the whole file', { error });
    return undefined;
  }
}

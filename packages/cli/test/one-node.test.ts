import { expect, it } from '@jest/globals';
import { VirtualClock } from '@nodepool/core/testing';
import { GatewayUnreachableError, LeaseClient, LeaseRequestError } from '@nodepool/requestor/http';
import { whileUnavailable } from '../src/leasing/one-node.js';

const unreachable = new GatewayUnreachableError('http://127.0.0.1:1', new Error('refused'));

function refused(status: number): LeaseRequestError {
  return new LeaseRequestError({ type: 'about:blank', title: '', status, detail: 'refused', code: 'x' }, 'GET /');
}

/** Repeats work that fails with the errors in turn, each after ten seconds. Resolves with the number of attempts. */
async function attempts(errors: readonly Error[], signal = new AbortController().signal): Promise<number> {
  const clock = new VirtualClock();
  const client = new LeaseClient({ url: 'http://127.0.0.1:1', token: '' });
  let calls = 0;
  await whileUnavailable({ client, clock, note: () => undefined }, 60, signal, async () => {
    const error = errors[calls++];
    const waited = new Promise<void>((resolve) => void clock.schedule(10_000, resolve));
    await clock.advance(10_000);
    await waited;
    if (error !== undefined) throw error;
  });
  return calls;
}

it('waits for a gateway for as long as a lease lives', async () => {
  expect(await attempts([unreachable, refused(503), unreachable])).toBe(4);
  await expect(attempts(Array<Error>(10).fill(unreachable))).rejects.toBe(unreachable);
});

it('does not repeat what the gateway refuses, or what was interrupted', async () => {
  const refusal = refused(404);
  await expect(attempts([refusal])).rejects.toBe(refusal);
  await expect(attempts([unreachable], AbortSignal.abort())).rejects.toBe(unreachable);
});

import assert from 'node:assert/strict';
import { isDeepStrictEqual, inspect } from 'node:util';
import { DriverError, isDriverError, isError, toDriverError, type ApiCall, type DriverErrorCode } from '@nodepool/core';

/** Throws `<what>: <actual> instead of <expected>` unless both are deeply equal. */
export function expectEqual(actual: unknown, expected: unknown, what: string): void {
  assert.ok(isDeepStrictEqual(actual, expected), `${what}: ${show(actual)} instead of ${show(expected)}`);
}

/** Throws unless the error has one of the codes. */
export function expectCode({ code, message }: DriverError, codes: readonly DriverErrorCode[], what: string): void {
  const expected = codes.map((each) => `"${each}"`).join(' or ');
  assert.ok(codes.includes(code), `${what} failed with the code "${code}" instead of ${expected}: ${message}`);
}

/** Returns an error that describes the failure, and the thrown value if it is not a `DriverError`. */
export function failureWith(what: string, thrown: unknown): Error {
  if (!isDriverError(thrown)) return new Error(notDriverError(what, thrown), { cause: thrown });
  const { code, outcome, message, retryAfterMs } = thrown;
  const how = code === 'unexpected' ? 'an error that the driver gave no code' : `the code "${code}"`;
  return new DriverError(code, `${what} failed with ${how} (outcome "${outcome}"): ${message}`, {
    outcome,
    retryAfterMs,
    cause: thrown,
  });
}

/** Returns a message for a thrown value that is not a `DriverError`. */
export function notDriverError(what: string, thrown: unknown): string {
  const { message } = toDriverError(thrown);
  return isError(thrown)
    ? `${what} failed with an error that is no DriverError: ${message}`
    : `${what} failed: ${message}`;
}

const CHANGING = {
  creation: /create|insert|launch|run|provision|\bPOST\b|\bPUT\b/i,
  deletion: /delete|remove|destroy|terminate/i,
} as const;

/** Returns true if none of the calls creates (or deletes) a resource. */
export function lacks(kind: keyof typeof CHANGING, calls: readonly ApiCall[]): boolean {
  return !calls.some(({ method, operation }) => CHANGING[kind].test(`${method} ${operation}`));
}

/** Lists the remote calls of work that did not end, and names the missing one. */
export function describeCalls(kind: keyof typeof CHANGING, calls: readonly ApiCall[]): string {
  if (calls.length === 0) return 'no remote call was made for it';
  const counts = new Map<string, number>();
  for (const { service, method, operation } of calls) {
    const name = `${service} ${method} ${operation}`;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const made = [...counts].map(([name, count]) => `${name} (${count})`).join(', ');
  const missing = kind === 'creation' ? 'no call that creates' : 'no delete call';
  return `${lacks(kind, calls) ? `${missing} reached the cloud; ` : ''}the remote calls were ${made}`;
}

function show(value: unknown): string {
  return inspect(value, { depth: 4, breakLength: Infinity, compact: true });
}

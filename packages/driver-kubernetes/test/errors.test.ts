/** Answers of a cluster, or of a proxy before it, and the error codes that they become. */

import { describe, expect, it } from '@jest/globals';
import type { Attempted } from '@nodepool/core';
import { errorOf, ApiStatusError } from '../src/errors.js';

const create: Attempted = { operation: 'create pods in main', changesSomething: true, now: Date.UTC(2026, 0, 1) };

/** Returns the object `Status` of an answer. */
function status(code: number, reason: string, message = 'said so'): string {
  return JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message });
}

describe('an answer', () => {
  it.each([
    [400, status(400, 'BadRequest'), 'configuration'],
    [422, status(422, 'Invalid'), 'configuration'],
    [400, status(400, '', 'admission webhook "policy.example.org" denied the request: no latest'), 'refused'],
    [403, status(403, 'Forbidden', 'pods "x" is forbidden: not yet ready to handle request'), 'transient'],
    [500, status(500, 'InternalError', 'Internal error occurred: failed calling webhook "a": refused'), 'transient'],
    [403, status(403, 'Forbidden', 'pods "x" is forbidden: violates PodSecurity "restricted"'), 'configuration'],
    [403, status(403, 'Forbidden', 'pods is forbidden: User "ci" cannot create resource "pods"'), 'auth'],
    [403, status(403, 'Forbidden', 'pods "x" is forbidden: exceeded quota: q'), 'quota'],
    [403, status(403, 'Forbidden', 'gateway: the address is not permitted'), 'auth'],
    [404, status(404, 'NotFound'), 'not-found'],
    [409, status(409, 'Conflict'), 'conflict'],
  ])('with status %i and text %s has code %s', (code, text, expected) => {
    expect(errorOf(create, new ApiStatusError(code, text))).toMatchObject({ code: expected });
  });

  it.each([
    [400, 'unexpected'],
    [403, 'auth'],
    [404, 'transient'],
    [408, 'transient'],
    [413, 'unexpected'],
    [431, 'unexpected'],
    [503, 'transient'],
  ])('of a proxy with status %i is no error of the configuration, but has code %s', (code, expected) => {
    const text = '<html><body>refused</body></html>';
    expect(errorOf(create, new ApiStatusError(code, text))).toMatchObject({ code: expected });
  });
});

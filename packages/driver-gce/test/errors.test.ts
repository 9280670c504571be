/**
 * Google Cloud's answers and the errors that they become. Permanent errors are listed by reason; all others count as
 * temporary.
 */

import { describe, expect, it } from '@jest/globals';
import { answerError, errorOf, operationError } from '../src/errors.js';
import { remediedError } from '../src/client/credentials.js';

const insert = { operation: 'instances.insert', changesSomething: true, now: Date.UTC(2026, 0, 1) };

/** Returns an error body in the format of the API. */
function body(code: number, reason: string): unknown {
  return { error: { code, message: 'said so', errors: [{ message: 'said so', domain: 'global', reason }] } };
}

describe('an answer', () => {
  it.each([
    [400, 'invalid', 'configuration'],
    [400, 'required', 'configuration'],
    [400, 'badRequest', 'unexpected'],
    [400, 'somethingNew', 'unexpected'],
    [400, 'resourceNotReady', 'conflict'],
    [403, 'rateLimitExceeded', 'throttled'],
    [403, 'quotaExceeded', 'quota'],
    [404, 'notFound', 'not-found'],
    [410, 'deleted', 'not-found'],
    [405, 'httpMethodNotAllowed', 'unexpected'],
    [418, 'teapot', 'unexpected'],
    [429, 'rateLimitExceeded', 'throttled'],
    [503, 'backendError', 'transient'],
  ])('%i %s is of kind %s', (status, reason, code) => {
    expect(answerError(insert, { status, body: body(status, reason), retryAfter: undefined })).toMatchObject({ code });
  });

  it.each([
    ["Required 'compute.instances.create' permission for 'projects/acme/zones/a/instances/np1'", 'auth'],
    ["Required 'compute.images.list' permission for 'projects/acme'", 'auth'],
    ["Required 'compute.images.useReadOnly' permission for 'projects/other/global/images/base'", 'configuration'],
    ["Required 'compute.subnetworks.use' permission for 'projects/host/regions/a/subnetworks/ci'", 'configuration'],
    ["The user does not have access to service account 'ci@acme'. User: 'np@acme'.", 'configuration'],
  ])('that forbids a call counts against the label if it is about what the label names: %s', (message, code) => {
    const refused = { error: { code: 403, message, errors: [{ message, domain: 'global', reason: 'forbidden' }] } };
    const error = answerError(insert, { status: 403, body: refused, retryAfter: undefined });
    expect(error).toMatchObject({ code, outcome: 'not-applied' });
    expect(error.message).toContain('needs a role');
  });

  it.each([
    [429, '30', 30_000],
    [429, 'Thu, 01 Jan 2026 00:00:30 GMT', 30_000],
    [429, 'soon', 5000],
    [503, '7', 7000],
    [503, undefined, undefined],
  ])('with status %i and Retry-After %s demands a wait of %s ms', (status, retryAfter, retryAfterMs) => {
    expect(answerError(insert, { status, body: '', retryAfter })).toHaveProperty('retryAfterMs', retryAfterMs);
  });

  it.each(['<html>no such page</html>', '{"error": "not found"}', '{"message": "no Route matched"}', ''])(
    'of a proxy with status 404 does not prove that something is deleted: %s',
    (text) => {
      const error = answerError(insert, { status: 404, body: text, retryAfter: undefined });
      expect(error).toMatchObject({ code: 'transient', outcome: 'unknown' });
    },
  );

  it('of a proxy with status 400 is unexpected and not applied', () => {
    const error = answerError(insert, { status: 400, body: '<html>bad gateway config</html>', retryAfter: undefined });
    expect(error).toMatchObject({ code: 'unexpected', outcome: 'not-applied' });
  });
});

describe('credentials', () => {
  it.each([
    ['https://compute.googleapis.com/compute/v1/projects/acme/zones/a/instances/np1', 'not-found'],
    ['https://storage.googleapis.com/storage/v1/b/acme-images/o/nodepool%2Fx', 'not-found'],
    ['https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/ci@acme:generateAccessToken', 'auth'],
    ['https://sts.googleapis.com/v1/token', 'auth'],
  ])('of an account that does not exist are a failed login, and not a missing instance: 404 of %s', (url, code) => {
    const response = { status: 404, data: body(404, 'notFound'), headers: new Headers() };
    const error = Object.assign(new Error('said so'), { config: { url }, response });
    expect(errorOf(insert, error)).toMatchObject({ code, outcome: 'not-applied' });
  });

  it.each(['invalid_grant', 'invalid_client', 'unauthorized_client', 'invalid_scope'])(
    'that the token endpoint refuses with %s are a failed login, and nothing was sent',
    (reason) => {
      const refused = { error: reason, error_description: 'reauth related error (invalid_rapt)' };
      const error = answerError(insert, { status: 400, body: refused, retryAfter: undefined });
      expect(error).toMatchObject({ code: 'auth', outcome: 'not-applied' });
    },
  );

  it.each([
    ["Error: ENOENT: no such file or directory, open '/etc/nodepool/key'", 'there is no such file'],
    ["Error: EACCES: permission denied, open '/etc/nodepool/gce.json'", 'this user may not read it'],
    ['Error: EISDIR: illegal operation on a directory, read', 'it is a folder'],
    ['Error: error:1E08010C:DECODER routines::unsupported', undefined],
    ['key must be a string, a buffer or an object', undefined],
  ])('that cannot be read are a failed login, and the message gives the reason: %s', (message, fault) => {
    const error = errorOf(insert, new Error(message));
    expect(error).toMatchObject({ code: 'auth', outcome: 'not-applied' });
    expect(error.message).toContain(`no credentials (${fault ?? message})`);
    const place = 'the credentials in /etc/nodepool/gce.json';
    expect(remediedError(insert, new Error(message), place).message).toMatch(
      /^[^;]*no credentials \(.*\); replace the credentials in \/etc\/nodepool\/gce\.json, which [^;]*$/,
    );
  });
});

describe('an operation that ended with', () => {
  it.each([
    ['INVALID_USAGE', 'configuration', 'not-applied'],
    ['UNSUPPORTED_OPERATION', 'configuration', 'not-applied'],
    ['SERVICE_ACCOUNT_ACCESS_DENIED', 'configuration', 'not-applied'],
    ['INVALID_STATE', 'unexpected', 'unknown'],
    ['SOMETHING_NEW', 'unexpected', 'unknown'],
    ['RESOURCE_OPERATION_RATE_EXCEEDED', 'throttled', 'not-applied'],
    ['INTERNAL_ERROR', 'transient', 'unknown'],
    ['BACKEND_ERROR', 'transient', 'unknown'],
    ['SERVICE_UNAVAILABLE', 'transient', 'unknown'],
    ['ZONE_RESOURCE_POOL_EXHAUSTED', 'capacity', 'not-applied'],
    ['VM_MIN_COUNT_NOT_REACHED', 'capacity', 'not-applied'],
    ['LIMIT_EXCEEDED', 'quota', 'not-applied'],
    ['CPUS_PER_VM_FAMILY_PER_REGION_LIMIT', 'quota', 'not-applied'],
    ['QUOTA_EXCEEDED', 'quota', 'not-applied'],
    ['RESOURCE_NOT_FOUND', 'not-found', 'not-applied'],
    ['RESOURCE_ALREADY_EXISTS', 'conflict', 'not-applied'],
    ['PERMISSION_DENIED', 'auth', 'not-applied'],
  ])('%s is of kind %s, with the outcome %s', (code, kind, outcome) => {
    expect(operationError('creation', [{ code, message: 'said so' }])).toMatchObject({ code: kind, outcome });
  });
});

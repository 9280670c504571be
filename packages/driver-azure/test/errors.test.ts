/**
 * Azure's answers and the errors that they become. Permanent errors are listed by code; all others count as temporary.
 */

import { describe, expect, it } from '@jest/globals';
import { cloudErrorIn, errorOf, failureOf } from '../src/errors.js';

const put = { operation: 'compute: PUT virtualMachines', changesSomething: true, now: 0 };

/** Returns an error with the properties of those from Azure's libraries. */
function rejection(statusCode: number, code: string): Error {
  return Object.assign(new Error('said so'), { name: 'RestError', statusCode, code });
}

describe('an answer', () => {
  it.each([
    [400, 'InvalidParameter', 'configuration'],
    [400, 'InvalidResourceReference', 'configuration'],
    [403, 'RequestDisallowedByPolicy', 'configuration'],
    [403, 'AuthorizationFailed', 'auth'],
    [400, 'InvalidAvailabilityZone', 'configuration'],
    [404, 'PlatformImageNotFound', 'configuration'],
    [404, 'GalleryImageNotFound', 'refused'],
    [409, 'RetryableError', 'conflict'],
    [404, 'ResourceNotFound', 'not-found'],
    [404, 'NotFound', 'not-found'],
    [409, 'MissingSubscriptionRegistration', 'configuration'],
    [400, 'BadRequest', 'unexpected'],
    [400, 'InvalidSomethingNew', 'unexpected'],
    [400, '', 'unexpected'],
    [405, 'NotSupported', 'unexpected'],
    [408, 'RequestTimeout', 'transient'],
    [409, 'OperationNotAllowed', 'conflict'],
    [409, 'SkuNotAvailable', 'capacity'],
    [429, 'TooManyRequests', 'throttled'],
    [503, 'ServiceUnavailable', 'transient'],
  ])('%i %s is of kind %s', (status, code, kind) => {
    expect(errorOf(put, rejection(status, code))).toMatchObject({ code: kind });
  });
});

it.each(['', 'PARSE_ERROR', 'REST_ERROR'])(
  'a 404 with the code "%s" does not prove that a resource is deleted',
  (code) => {
    expect(errorOf(put, rejection(404, code))).toMatchObject({ code: 'transient', outcome: 'unknown' });
  },
);

describe('a refusal by a policy', () => {
  it('is a configuration error for any code', () => {
    const text = "Resource 'np1' was disallowed by policy 'quota limit exceeded by roles'.";
    const error = Object.assign(new Error(text), { statusCode: 403, code: 'RequestDisallowedByPolicy' });
    expect(errorOf(put, error)).toMatchObject({ code: 'configuration' });
    expect(errorOf(put, error).message).not.toContain('needs a role');
    expect(failureOf('creation', { code: 'RequestDisallowedByPolicy', message: text })).toMatchObject({
      code: 'configuration',
    });
  });
});

describe('a call without permission for a linked resource', () => {
  it.each([
    ['Microsoft.ManagedIdentity/userAssignedIdentities/assign/action', 'configuration'],
    ['Microsoft.Compute/images/read', 'configuration'],
    ['Microsoft.Compute/galleries/images/versions/read', 'configuration'],
    ['Microsoft.Network/virtualNetworks/subnets/join/action', 'auth'],
  ])('counts against the label only if the label names the resource: %s', (action, code) => {
    const message = `The client 'np' has permission to perform action 'Microsoft.Compute/virtualMachines/write' on scope '/subscriptions/1'; however, it does not have permission to perform action '${action}' on the linked scope(s) '/subscriptions/2'.`;
    const error = Object.assign(new Error(message), { statusCode: 403, code: 'LinkedAuthorizationFailed' });
    expect(errorOf(put, error)).toMatchObject({ code, outcome: 'not-applied' });
    expect(failureOf('creation', { code: 'LinkedAuthorizationFailed', message })).toMatchObject({ code });
  });
});

describe('an operation that failed with', () => {
  it.each([
    ['InvalidParameter', 'configuration'],
    ['ImageNotFound', 'configuration'],
    ['InvalidParameterOfSomethingNew', 'instance-failed'],
    ['OSProvisioningTimedOut', 'instance-failed'],
    ['AllocationFailed', 'capacity'],
  ])('%s is of kind %s', (code, kind) => {
    expect(failureOf('creation', { code, message: 'said so' })).toMatchObject({ code: kind, outcome: 'applied' });
  });
});

it('an operation that failed with a retryable error is a temporary failure, whatever its reason', () => {
  const message = 'Cannot proceed with operation because resource main is not in Succeeded state.';
  const details = [{ code: 'ReferencedResourceNotProvisioned', message }];
  const error = { code: 'RetryableError', message: 'A retryable error occurred.', details };
  const failure = failureOf('creation', cloudErrorIn({ status: 'Failed', error }));
  expect(failure).toMatchObject({ code: 'transient', outcome: 'applied' });
  expect(failure.message).toContain(`ReferencedResourceNotProvisioned: ${message}`);
});

it('an operation that failed has the code of its first detail', () => {
  const details = [{ code: 'SkuNotAvailable', message: 'no capacity' }];
  expect(cloudErrorIn({ status: 'Failed', error: { code: 'DeploymentFailed', message: 'failed', details } })).toEqual({
    code: 'SkuNotAvailable',
    message: 'no capacity',
  });
});

describe('a failed login', () => {
  it.each([
    ['AuthenticationRequiredError', 'network_error: See https://aka.ms/msal.js.errors', 'transient'],
    // The library's error for a private login service that is unreachable.
    ['CredentialUnavailableError', 'endpoints_resolution_error: See https://aka.ms/msal.js.errors', 'transient'],
    ['AuthenticationRequiredError', 'invalid_client: 7000215 - AADSTS7000215: Invalid client secret', 'auth'],
    ['CredentialUnavailableError', "ENOENT: no such file or directory, open '/token'", 'auth'],
    ['AuthenticationError', 'the service is away: 503 - try again', 'transient'],
    ['AuthenticationError', 'invalid_client: Trace ID: 1b4e5020-9502-4503-b504-505b27d3a506', 'auth'],
    ['AuthenticationError', 'invalid_client: Timestamp: 2026-01-01 12:05:04.502Z', 'auth'],
  ])('%s with "%s" is of kind %s, and nothing was sent', (name, message, kind) => {
    const error = Object.assign(new Error(message), { name });
    expect(errorOf(put, error)).toMatchObject({ code: kind, outcome: 'not-applied' });
  });

  it('is judged by its text and not by the address of the service', () => {
    const error = Object.assign(new Error('invalid_client'), { name: 'AuthenticationError' });
    const attempted = { ...put, operation: 'the login at https://timeout.example.org:5021' };
    expect(errorOf(attempted, error)).toMatchObject({ code: 'auth' });
  });
});

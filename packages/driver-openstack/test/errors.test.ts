/** Error texts of the services and the error codes that they become. */

import { describe, expect, it } from '@jest/globals';
import type { Attempted } from '@nodepool/core';
import { connectionErrorOf, errorOf, faultError } from '../src/errors.js';

const create: Attempted = { operation: 'compute: POST servers', changesSomething: true, now: Date.UTC(2026, 0, 1) };

function answer(status: number, body: unknown, headers: Record<string, string> = {}): Parameters<typeof errorOf>[1] {
  return { status, headers, text: typeof body === 'string' ? body : JSON.stringify(body) };
}

const ID_OF_REQUEST = { 'x-openstack-request-id': 'req-6d9b2d3c-4ed5-4f5c-8ad4-6b4ef2f12e53' };
const PAGE =
  '<html>\n <head>\n  <title>404 Not Found</title>\n </head>\n <body>\n  <h1>404 Not Found</h1>\n  No image found with ID 1<br /><br />\n </body>\n</html>';

const nova = (key: string, message: string): unknown => ({ [key]: { code: 0, message } });
const neutron = (type: string, message: string): unknown => ({ NeutronError: { type, message, detail: '' } });

describe('an answer', () => {
  it.each([
    [
      403,
      nova(
        'forbidden',
        'Quota exceeded for cores, instances: Requested 1, 1, but already used 3, 3 of 3, 3 cores, instances',
      ),
      'quota',
    ],
    [403, nova('forbidden', 'Maximum number of ports exceeded'), 'quota'],
    [
      403,
      nova(
        'forbidden',
        'Project 5a9d is over a limit for [Resource servers is over limit of 10 due to current usage 10 and delta 1]',
      ),
      'quota',
    ],
    [403, nova('forbidden', "Policy doesn't allow os_compute_api:servers:create to be performed."), 'auth'],
    [409, neutron('OverQuota', "Quota exceeded for resources: ['floatingip']."), 'quota'],
    [409, neutron('IpAddressGenerationFailure', 'No more IP addresses available on network 1.'), 'capacity'],
    [400, neutron('ExternalIpAddressExhausted', 'Unable to find any IP address on external network 1.'), 'capacity'],
    [
      409,
      nova('conflictingRequest', 'Multiple possible networks found, use a Network ID to be more specific.'),
      'configuration',
    ],
    [
      409,
      nova('conflictingRequest', "Multiple security groups found matching 'web'. Use an ID to be more specific."),
      'configuration',
    ],
    [409, nova('conflictingRequest', "Cannot 'delete' instance 1 while it is in task_state deleting"), 'conflict'],
    [
      413,
      nova('overLimit', "VolumeLimitExceeded: Maximum number of volumes allowed (10) exceeded for quota 'volumes'."),
      'quota',
    ],
    [413, nova('overLimit', 'This request was rate-limited.'), 'throttled'],
    [400, nova('badRequest', 'Can not find requested image'), 'configuration'],
    [400, nova('badRequest', 'Flavor 4 could not be found.'), 'configuration'],
    [400, nova('badRequest', 'Network 4 could not be found.'), 'configuration'],
    [400, nova('badRequest', 'Invalid key_name provided.'), 'configuration'],
    [400, nova('badRequest', 'The requested availability zone is not available'), 'refused'],
    [400, nova('badRequest', 'Security group x not found for project y.'), 'configuration'],
    [
      400,
      nova(
        'badRequest',
        'Invalid input for field/attribute metadata. Value: {}. Additional properties are not allowed',
      ),
      'configuration',
    ],
    [400, nova('badRequest', "Flavor's memory is too small for requested image."), 'configuration'],
    [
      400,
      nova(
        'badRequest',
        'Volume is smaller than the minimum size specified in image metadata. Volume size is 1 bytes.',
      ),
      'configuration',
    ],
    [403, nova('forbidden', 'Only volume-backed servers are allowed for flavors with zero disk.'), 'configuration'],
    [403, nova('forbidden', 'It is not allowed to create an interface on external network 5a9d'), 'configuration'],
    [403, nova('forbidden', 'Maximum number of metadata items exceeds 128'), 'configuration'],
    [400, nova('badRequest', 'something new'), 'unexpected'],
    [
      401,
      { error: { code: 401, title: 'Unauthorized', message: 'The request you have made requires authentication.' } },
      'auth',
    ],
    [429, { overLimit: { code: 429, message: 'Too many', retryAfter: '7' } }, 'throttled'],
    [
      503,
      { message: 'The Keystone service is temporarily unavailable.', code: '503 Service Unavailable' },
      'throttled',
    ],
    [503, '<html><body><h1>503 Service Unavailable</h1></body></html>', 'transient'],
    [408, '<html><body><h1>408 Request Time-out</h1></body></html>', 'transient'],
    [500, nova('computeFault', 'Unexpected API Error.'), 'transient'],
    [302, '', 'unexpected'],
  ])('%i %j is of kind %s', (status, body, code) => {
    expect(errorOf(create, answer(status, body))).toMatchObject({ code });
  });

  it.each([
    ['nova', {}, nova('itemNotFound', 'Instance 1 could not be found.'), 'not-found'],
    ['neutron', {}, neutron('PortNotFound', 'Port 1 could not be found.'), 'not-found'],
    ['nova for an unknown path', {}, nova('itemNotFound', 'The resource could not be found.'), 'transient'],
    ['neutron for an unknown path', {}, neutron('HTTPNotFound', 'The resource could not be found.'), 'transient'],
    ['glance', ID_OF_REQUEST, PAGE, 'not-found'],
    ['a proxy', {}, PAGE, 'transient'],
    ['a gateway', {}, { error: 'not found' }, 'transient'],
    ['a gateway without a text', {}, '', 'transient'],
  ])(
    'with status 404 of %s proves that something is deleted only if a service sent it',
    (_from, headers, body, code) => {
      const outcome = code === 'not-found' ? 'not-applied' : 'unknown';
      expect(errorOf(create, answer(404, body, headers))).toMatchObject({ code, outcome });
    },
  );

  it('leads to a message with operation, status and the text of the cloud, in one line without markup', () => {
    const html =
      '<html><head><title>No</title></head><body><h1>404 Not Found</h1>\nNo image  found<br /></body></html>';
    expect(errorOf(create, answer(404, html, ID_OF_REQUEST)).message).toBe(
      'compute: POST servers: 404 404 Not Found No image found',
    );
    expect(errorOf(create, answer(403, neutron('OverQuota', 'Quota exceeded'))).message).toContain(
      'OverQuota: Quota exceeded',
    );
    expect(errorOf(create, answer(500, 'x'.repeat(10_000))).message.length).toBeLessThan(600);
  });

  it('has an unknown outcome if the call may have taken effect', () => {
    expect(errorOf(create, answer(502, '')).outcome).toBe('unknown');
    expect(errorOf(create, answer(408, '')).outcome).toBe('unknown');
    expect(errorOf({ ...create, changesSomething: false }, answer(502, '')).outcome).toBe('not-applied');
    expect(errorOf(create, answer(429, '')).outcome).toBe('not-applied');
  });

  it.each([
    ['Retry-After in seconds', { 'retry-after': '7' }, {}, 7000],
    ['a Retry-After date', { 'retry-after': 'Thu, 01 Jan 2026 00:00:30 GMT' }, {}, 30_000],
    ['a Retry-After date in the past', { 'retry-after': 'Wed, 31 Dec 2025 00:00:30 GMT' }, {}, 0],
    ['retryAfter in the body', {}, { overLimit: { message: 'slow', retryAfter: '9' } }, 9000],
    ['an invalid Retry-After', { 'retry-after': 'soon' }, {}, 5000],
    ['a Retry-After of a week', { 'retry-after': '604800' }, {}, 60_000],
    ['no Retry-After', {}, {}, 5000],
  ])('with %s determines the wait', (_case, headers, body, retryAfterMs) => {
    expect(errorOf(create, answer(429, body, headers))).toMatchObject({ code: 'throttled', retryAfterMs });
  });
});

describe('a connection error', () => {
  const failed = (code: string): Error => Object.assign(new Error('failed'), { code });

  it.each([
    ['ECONNREFUSED', 'transient', 'not-applied'],
    ['UND_ERR_CONNECT_TIMEOUT', 'transient', 'not-applied'],
    ['ECONNRESET', 'transient', 'unknown'],
    ['UND_ERR_SOCKET', 'transient', 'unknown'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'certificate', 'not-applied'],
    ['CERT_HAS_EXPIRED', 'certificate', 'not-applied'],
  ])('%s is of kind %s with outcome %s', (code, kind, outcome) => {
    const origin = 'https://cloud.example.org:8774';
    const error = connectionErrorOf({ ...create, origin }, failed(code));
    expect(error).toMatchObject({
      code: kind,
      outcome,
      message: expect.stringContaining('https://cloud.example.org:8774'),
    });
  });

  it('of several addresses is not applied if no connection was made', () => {
    const error = new AggregateError([failed('ECONNREFUSED'), failed('ECONNREFUSED')]);
    expect(connectionErrorOf(create, error)).toMatchObject({ outcome: 'not-applied' });
  });
});

describe('a fault of a server', () => {
  it.each([
    ['No valid host was found. There are not enough hosts available.', 'capacity'],
    ['Exceeded maximum number of retries. Exceeded max scheduling attempts 3 for instance 1', 'capacity'],
    ['Exceeded maximum number of retries. Last exception: Quota exceeded for resources: [port]', 'quota'],
    [
      'Build of instance 1 aborted: Volume 2 did not finish being created even after we waited 3 seconds',
      'instance-failed',
    ],
    ['VolumeLimitExceeded: Maximum number of volumes allowed (2) exceeded', 'quota'],
    ['Requested volume or snapshot exceeds allowed gigabytes quota. Requested 50G, quota is 10G', 'quota'],
    ['FixedIpLimitExceeded', 'quota'],
    ['Zero fixed ips available.', 'capacity'],
    ['', 'instance-failed'],
  ])('%j is of kind %s, and the server must be deleted', (fault, code) => {
    expect(faultError('s1', fault)).toMatchObject({ code, outcome: 'applied' });
  });
});

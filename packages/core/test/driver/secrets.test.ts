/** Secrets in texts of clouds, and texts that only look like them. */

import { describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import { VirtualClock } from '../../src/testing/index.js';
import { createTaskManager, silentLogger, TransientError, withoutSecrets } from '../../src/index.js';

describe('a text', () => {
  it.each([
    '{"access_token":"opaque.value-1","expires_in":3599}',
    '{"access_token": "opaque.value-1 that was shortened',
    String.raw`{\"refresh_token\": \"opaque.value-1\"}`,
    "{'password': 'opaque.value-1'}",
    'grant_type=client_credentials&client_secret=opaque.value-1&scope=a',
    'https://disk.example/vhd?sv=2020&sig=opaque.value-1&se=9',
    'Authorization: Basic opaque.value-1',
    'X-Auth-Token: opaque.value-1',
    'https://user:opaque.value-1@proxy.example:3128/',
    'the value is known-opaque.value-1!',
  ])('loses its secret: %s', (text) => {
    const clean = withoutSecrets(text, ['known-opaque.value-1']);
    expect(clean).not.toContain('opaque.value-1');
    expect(clean).toContain('[secret]');
  });

  it.each([
    'ya29.a0AfB_byC0123456789',
    'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl',
    'gAAAAABnRkz0123456789abcdefghijklmnop',
    'Bearer abcdefghijklmnop0123',
    '-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----',
    '-----BEGIN PRIVATE KEY-----\nMIIEow that was shortened',
  ])('loses a value that has the form of a secret: %s', (value) => {
    expect(withoutSecrets(`before ${value}`)).not.toContain(value.slice(-8));
  });

  it.each([
    'clouds.yaml: auth.password is missing',
    'failed to sync secret cache: secret "zuul-key" not found',
    'auth_type "token" is not supported; there are password, token and v3applicationcredential',
    'The SKU Basic of the address is not available; Bearer authentication is required',
    '/subscriptions/c35cf7df-ed75-4c85-be00-535409a85120/resourceGroups/nodepool/providers/Microsoft.Compute/disks/a',
    'image@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef not found',
    'cannot connect to https://cloud.example.org:5000/v3 (ECONNREFUSED)',
  ])('without a secret is not changed: %s', (text) => {
    expect(withoutSecrets(text, [undefined, 'a', ''])).toBe(text);
  });
});

it('an error of a task keeps its class and its code, and loses secrets, requests and answers', async () => {
  const clock = new VirtualClock();
  const tasks = createTaskManager({ clock, callsPerSecond: Infinity, onApiCall: () => undefined, log: silentLogger });
  const token = 'ya29.a0AfB_byC0123456789';
  const cause = Object.assign(new Error(`answer: ${token}`), { code: 'ECONNRESET', config: { headers: { token } } });
  const failed = tasks.submit(
    { service: 's', method: 'GET', operation: 'o', main: () => Promise.reject(new TransientError(token, { cause })) },
    { signal: new AbortController().signal, deadline: Infinity, log: silentLogger },
  );
  const error: unknown = await failed.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(TransientError);
  expect(error).toMatchObject({ code: 'transient', cause: { message: 'answer: [secret]', code: 'ECONNRESET' } });
  expect(inspect(error, { depth: Infinity, showHidden: true })).not.toContain(token);
});

it('an error that is a cause of another one remains the same object', async () => {
  const clock = new VirtualClock();
  const tasks = createTaskManager({ clock, callsPerSecond: Infinity, onApiCall: () => undefined, log: silentLogger });
  const inner = new TransientError('ya29.a0AfB_byC0123456789');
  const outer = new TransientError('the operation failed', { cause: inner });
  const failed = tasks.submit(
    { service: 's', method: 'GET', operation: 'o', main: () => Promise.reject(outer) },
    { signal: new AbortController().signal, deadline: Infinity, log: silentLogger },
  );
  await expect(failed).rejects.toBe(outer);
  expect(outer.cause).toBe(inner);
  expect(inner.message).toBe('[secret]');
});

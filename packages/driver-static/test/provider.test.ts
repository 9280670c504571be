/** The machines that the driver declares, and their checks. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { TransientError, type SuppliedMachine } from '@nodepool/core';
import { callOn, failureOf, SimulatedLogins, simulatedTime, TestProvider, type TestTime } from '@nodepool/driver-kit';
import { driver, staticDriver, type Resolve } from '../src/index.js';
import { KEY, rack, resolve } from './sections.js';

let time: TestTime;
let logins: SimulatedLogins;
let provider: TestProvider;

async function start(names: Resolve = resolve): Promise<void> {
  time = simulatedTime();
  logins = new SimulatedLogins(time.clock);
  provider = await new TestProvider({ time, driver: staticDriver({ resolve: names }), section: rack, logins }).start();
}

beforeEach(() => start());
afterEach(() => provider.stop());

function machine(index: number): SuppliedMachine {
  const found = provider.machines?.[index];
  if (found === undefined) throw new Error(`there is no machine ${index}`);
  return found;
}

function check(index: number): ReturnType<SuppliedMachine['check']> {
  return provider.end(machine(index).check(callOn(time.clock, 60_000)));
}

describe('the machines', () => {
  it('have the defaults of the Python Nodepool', () => {
    const declared = provider.machines?.map(({ hostname, labels, slots, connection }) => [
      hostname, labels, slots, connection.type, connection.port, connection.username, connection.pythonPath, connection.shellType,
    ]); // prettier-ignore
    expect(declared).toEqual([
      ['a.test', ['arm', 'large'], 2, 'ssh', 22, 'zuul', 'auto', null],
      ['a.test', ['arm'], 1, 'ssh', 22, 'other', 'auto', null],
      ['win.test', ['windows', 'large'], 1, 'winrm', 5986, 'zuul', 'auto', null],
      ['switch.test', ['switch'], 1, 'network_cli', 830, 'zuul', 'auto', null],
      ['2001:db8::1', ['six'], 1, 'ssh', 22, 'zuul', 'auto', null],
    ]);
  });
});

describe('the check of a machine', () => {
  it('returns the host keys and the first address of the machine', async () => {
    expect(await check(0)).toEqual({ hostKeys: [KEY], publicIpv4: '192.0.2.1' });
    expect(await check(4)).toEqual({ hostKeys: [KEY], publicIpv6: '2001:db8::1' });
  });

  it('accepts additional keys, and fails if the configured one is missing', async () => {
    logins.setKeys('a.test', ['ssh-rsa AAAA', KEY]);
    expect((await check(0)).hostKeys).toEqual(['ssh-rsa AAAA', KEY]);
    logins.setKeys('a.test', ['ssh-rsa AAAA']);
    const failure = await failureOf(check(0));
    expect(failure.code).toBe('keyscan');
    expect(failure.message).toContain(
      `port 22 of a.test does not have the configured host key ${KEY}, only: ssh-rsa AAAA`,
    );
  });

  it('fails if one of several configured keys is missing', async () => {
    const keys = ['ssh-rsa AAAA', `${KEY} root@a`];
    const section = {
      ...rack,
      pools: [{ name: 'main', nodes: [{ name: 'a.test', labels: ['arm'], 'host-key': keys }] }],
    };
    await provider.stop();
    provider = await new TestProvider({ time, driver: staticDriver({ resolve }), section, logins }).start();
    expect((await failureOf(check(0))).message).toContain('does not have the configured host key ssh-rsa AAAA');
    logins.setKeys('a.test', ['ssh-rsa AAAA']);
    expect((await failureOf(check(0))).message).toContain(`does not have the configured host key ${KEY}`);
    logins.setKeys('a.test', [KEY, 'ssh-rsa AAAA']);
    expect((await check(0)).hostKeys).toEqual([KEY, 'ssh-rsa AAAA']);
  });

  it('ends after the timeout of the machine', async () => {
    logins.setSilent('a.test', true);
    const began = time.clock.monotonic();
    expect((await failureOf(check(0))).message).toBe('port 22 of a.test accepted no connection within 5000 ms');
    expect(time.clock.monotonic() - began).toBe(5000);
  });

  it('returns the configured keys without a connection if host-key-checking is false', async () => {
    logins.setSilent('a.test', true);
    expect(await check(1)).toEqual({ hostKeys: ['ssh-rsa X'], publicIpv4: '192.0.2.1' });
  });

  it('only connects to the port for connection types without host keys', async () => {
    expect(await check(2)).toEqual({ hostKeys: [], publicIpv4: '192.0.2.1' });
    logins.setSilent('win.test', true);
    expect((await failureOf(check(2))).message).toBe('port 5986 of win.test accepted no connection within 5000 ms');
    expect((await check(3)).hostKeys).toEqual([KEY]);
  });

  it('ends after the timeout of the machine although its name is still being resolved', async () => {
    await provider.stop();
    await start(() => new Promise(() => undefined));
    const began = time.clock.monotonic();
    const failure = await failureOf(check(0));
    expect(failure).toMatchObject({
      code: 'timeout',
      message: 'the resolution of host name a.test had no answer in time',
    });
    expect(time.clock.monotonic() - began).toBe(5000);
  });

  it('fails for a name that cannot be resolved', async () => {
    await provider.stop();
    await start((name) => Promise.reject(new TransientError(`host name ${name} could not be resolved: ENOTFOUND`)));
    expect((await failureOf(check(1))).message).toBe('host name a.test could not be resolved: ENOTFOUND');
  });
});

describe('the name resolution', () => {
  it('returns IP addresses unchanged', async () => {
    const section = { ...rack, pools: [{ name: 'main', nodes: [{ name: '192.0.2.7', labels: ['arm'] }] }] };
    await provider.stop();
    provider = await new TestProvider({ time, driver, section, logins }).start();
    expect(await check(0)).toEqual({ hostKeys: [KEY], publicIpv4: '192.0.2.7' });
  });
});

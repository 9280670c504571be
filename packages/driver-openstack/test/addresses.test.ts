/** Selection of a server's public and private addresses, and of the address at which a node is reached. */

import { describe, expect, it } from '@jest/globals';
import { chooseAddresses, interfaceAddress, type AddressFacts } from '../src/addresses.js';
import { readServer, type ServerAddress } from '../src/client/server.js';
import { instanceOf } from '../src/instance.js';

const network = (name: string, external: boolean): AddressFacts['networks'][number] => ({
  id: `id of ${name}`,
  name,
  external,
  isDefault: false,
  projectId: undefined,
});
const hint = (name: string, change: Partial<AddressFacts['hints'][number]>): AddressFacts['hints'][number] => ({
  name,
  routesExternally: undefined,
  natDestination: false,
  natSource: false,
  defaultInterface: false,
  ...change,
});
const facts: AddressFacts = { networks: [network('wan', true), network('lan', false)], hints: [] };

function address(text: string, on: string, floating = false): ServerAddress {
  return { network: on, address: text, version: text.includes(':') ? 6 : 4, floating };
}

describe('the addresses of a server', () => {
  it.each([
    [
      'a floating IP if there is one',
      [address('10.0.0.4', 'lan'), address('8.8.8.8', 'lan'), address('172.24.4.9', 'lan', true)],
      '172.24.4.9',
      '10.0.0.4',
    ],
    [
      'an address on an external network, routable or not',
      [address('10.0.0.4', 'lan'), address('172.24.4.9', 'wan')],
      '172.24.4.9',
      '10.0.0.4',
    ],
    [
      'a globally routable address',
      [address('192.168.3.4', 'lan'), address('203.0.113.9', 'lan')],
      '203.0.113.9',
      '192.168.3.4',
    ],
    [
      'undefined if all addresses are private',
      [address('10.0.0.4', 'lan'), address('100.64.1.1', 'lan'), address('172.31.255.1', 'lan')],
      undefined,
      '10.0.0.4',
    ],
    ['an address just outside the private ranges', [address('172.32.0.1', 'lan')], '172.32.0.1', undefined],
  ])('the public IPv4 address is %s', (_case, addresses, publicIpv4, privateIpv4) => {
    expect(chooseAddresses({ addresses }, facts)).toMatchObject({ publicIpv4, privateIpv4 });
  });

  it('the public IPv6 address is the first globally routable one', () => {
    const addresses = [address('fe80::1', 'lan'), address('fd00::1', 'lan'), address('2001:db8::7', 'lan')];
    expect(chooseAddresses({ addresses }, facts).publicIpv6).toBe('2001:db8::7');
  });

  it('network settings in clouds.yaml override the detected properties', () => {
    const addresses = [address('203.0.113.9', 'lan'), address('10.0.0.4', 'lan'), address('10.9.9.9', 'other')];
    const hints = [hint('lan', { routesExternally: false }), hint('other', { routesExternally: true })];
    expect(chooseAddresses({ addresses }, { ...facts, hints })).toMatchObject({
      publicIpv4: '10.9.9.9',
      privateIpv4: '203.0.113.9',
    });
  });

  it('an address on the network with default_interface comes first', () => {
    const addresses = [address('10.0.0.4', 'lan'), address('10.1.0.4', 'best')];
    const hints = [hint('best', { defaultInterface: true })];
    expect(chooseAddresses({ addresses }, { ...facts, hints }).privateIpv4).toBe('10.1.0.4');
  });

  it('network settings in clouds.yaml can name networks by id', () => {
    const addresses = [address('10.9.9.9', 'wan'), address('203.0.113.9', 'lan')];
    const hints = [hint('id of wan', { routesExternally: true }), hint('id of lan', { routesExternally: false })];
    expect(chooseAddresses({ addresses }, { ...facts, hints })).toMatchObject({
      publicIpv4: '10.9.9.9',
      privateIpv4: '203.0.113.9',
    });
  });

  it.each([
    ['its private address', [address('172.24.4.9', 'wan'), address('10.0.0.4', 'lan')], '10.0.0.4'],
    ['its floating IP', [address('10.0.0.4', 'lan'), address('172.24.4.9', 'lan', true)], '172.24.4.9'],
    ['its IPv6 address', [address('172.24.4.9', 'wan'), address('2001:db8::7', 'lan')], '2001:db8::7'],
    ['another network if it has none', [address('172.24.4.9', 'wan')], '172.24.4.9'],
  ])('a node is reached on the network with default_interface: at %s', (_case, addresses, expected) => {
    const hints = [hint('lan', { defaultInterface: true })];
    expect(interfaceAddress(chooseAddresses({ addresses }, { ...facts, hints }), false)).toBe(expected);
  });
});

it('the private address of a node is its public one if it has no other', () => {
  const addresses = { wan: [{ addr: '172.24.4.9', version: 4 }] };
  const server = readServer({ id: 'server', status: 'ACTIVE', addresses }, 'compute: GET server');
  const more = { flavors: [], cloud: 'acme', region: undefined, private: false };
  expect(instanceOf(server, { ...facts, ...more })).toMatchObject({
    publicIpv4: '172.24.4.9',
    privateIpv4: '172.24.4.9',
    interfaceIp: '172.24.4.9',
  });
});

describe('a node is reached at', () => {
  const all = {
    defaultAddress: undefined,
    publicIpv4: '8.8.8.8',
    privateIpv4: '10.0.0.1',
    publicIpv6: '2001:db8::1',
    hasFloating: false,
  };
  it.each([
    ['its public address', all, false, '8.8.8.8'],
    ['its private address with use-internal-ip', all, true, '10.0.0.1'],
    [
      'its IPv6 address if it has no other',
      { ...all, publicIpv4: undefined, privateIpv4: undefined },
      false,
      '2001:db8::1',
    ],
    ['its IPv6 address if it has no public IPv4 address', { ...all, publicIpv4: undefined }, false, '2001:db8::1'],
    [
      'its private address if it has no other',
      { ...all, publicIpv4: undefined, publicIpv6: undefined },
      false,
      '10.0.0.1',
    ],
    [
      'its public address with use-internal-ip if it has no private one',
      { ...all, privateIpv4: undefined },
      true,
      '8.8.8.8',
    ],
  ])('%s', (_case, chosen, wantsPrivate, expected) => {
    expect(interfaceAddress(chosen, wantsPrivate)).toBe(expected);
  });
});

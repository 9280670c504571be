/** The machine's name for other programs. */

import { expect, it } from '@jest/globals';
import { fullyQualifiedHostname, type HostNames } from '../src/process/hostname.js';

const names = (more: Partial<HostNames>): HostNames => ({
  hostname: () => 'nb01',
  addressOf: async () => '192.0.2.1',
  nameOf: async () => 'nb01.example.org',
  ...more,
});

it('the host name has the domain of the name service', async () => {
  expect(await fullyQualifiedHostname(names({}))).toBe('nb01.example.org');
});

it.each([
  ['the name has a domain', { hostname: () => 'nb01.example.org', nameOf: async () => 'other.example.org' }],
  ['the name service knows only a short name', { hostname: () => 'nb01', nameOf: async () => 'localhost' }],
  ['the name is unknown', { addressOf: () => Promise.reject(new Error('ENOTFOUND')) }],
  ['the address has no name', { nameOf: () => Promise.reject(new Error('ENOTFOUND')) }],
])('the host name is the plain name if %s', async (_why, more) => {
  const given = names(more);
  expect(await fullyQualifiedHostname(given)).toBe(given.hostname());
});

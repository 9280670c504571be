/** Tests of `fair-shares` and `prices` in the configuration. */

import { describe, expect, it } from '@jest/globals';
import { formatProblem } from '@nodepool/config';
import { pricesIn } from '@nodepool/core';
import { configOf, problemsOf, PROVIDER } from './files.js';

const SHARES = `
fair-shares:
  half-life: 300
  default-share: 2
  tenants:
    - {tenant-name: a, share: 3, projects: [{project-name: acme/app, share: 2}]}
    - {tenant-name: b}
`;

async function messagesOf(text: string): Promise<string[]> {
  return (await problemsOf(text)).map((problem) => formatProblem({ ...problem, file: 'f' }));
}

describe('fair shares', () => {
  it('are absent without the key or without a value', async () => {
    expect((await configOf('labels: []\n')).fairShares).toBeUndefined();
    expect((await configOf('fair-shares:\n')).fairShares).toBeUndefined();
  });

  it('have defaults', async () => {
    expect((await configOf('fair-shares: {}\n')).fairShares).toEqual({
      halfLifeMs: 600_000,
      defaultShare: 1,
      tenants: new Map(),
    });
  });

  it('have weights of tenants and projects', async () => {
    expect((await configOf(SHARES)).fairShares).toEqual({
      halfLifeMs: 300_000,
      defaultShare: 2,
      tenants: new Map([
        ['a', { share: 3, projects: new Map([['acme/app', 2]]) }],
        ['b', { share: 1, projects: new Map() }],
      ]),
    });
  });

  it.each([
    ['fair-shares: {tenants: [{tenant-name: a, share: 0}]}', 'fair-shares.tenants[0].share'],
    ['fair-shares: {half-life: -1}', 'fair-shares.half-life'],
    ['fair-shares: {tenants: [{tenant-name: a}, {tenant-name: a}]}', 'fair-shares.tenants[1].tenant-name'],
    [
      'fair-shares: {tenants: [{tenant-name: a, projects: [{project-name: p, share: 1}, {project-name: p, share: 1}]}]}',
      'fair-shares.tenants[0].projects[1].project-name',
    ],
    ['fair-shares: {tenants: [{tenant-name: a, weight: 2}]}', 'weight'],
  ])('%s is refused', async (text, place) => {
    const messages = await messagesOf(`${text}\n`);
    expect(messages).toHaveLength(1);
    expect(messages[0]).toContain(place);
  });
});

describe('prices', () => {
  const withPrices = (prices: string): string => PROVIDER.replace('cloud: here', `cloud: here\n    prices: ${prices}`);

  it('belong to a provider', async () => {
    const text = withPrices('{currency: EUR, types: {m1.small: {on-demand: 0.1, spot: 0.02}, m1.large: 0.4}}');
    const section = (await configOf(text)).providers.get('cloud')?.section ?? {};
    expect(pricesIn(section)).toEqual({
      currency: 'EUR',
      types: new Map([
        ['m1.small', { 'on-demand': 0.1, spot: 0.02 }],
        ['m1.large', { 'on-demand': 0.4, spot: 0.4 }],
      ]),
    });
  });

  it('below zero are refused', async () => {
    expect(await messagesOf(withPrices('{currency: EUR, types: {m1.small: -1}}'))).not.toEqual([]);
  });
});

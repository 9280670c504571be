/** The list of providers. */

import { h, type Child } from './dom.js';
import { link, name } from './links.js';
import type { ProvidersDocument, ProviderStatus } from './model.js';
import type { View } from './page.js';
import { table, type Column } from './table.js';
import { ageText, counted, durationText, numberText, shareText } from './text.js';
import { providerBadge, providerTone } from './tones.js';
import { age, groupBar, meter, nothing, withCode, type Present } from './widgets.js';

export const providersPage: View<ProvidersDocument> = {
  title: () => 'Providers',
  draw: ({ document: { providers }, present }) => [
    h('h1', { tabindex: -1 }, 'Providers'),
    providerTable(providers, present),
  ],
};

export function providerTable(providers: readonly ProviderStatus[], present: Present): HTMLElement {
  if (providers.length === 0) {
    return nothing('The configuration has no providers. Add one to ', h('code', {}, 'providers'), ' in nodepool.yaml.');
  }
  return table({
    caption: 'Providers',
    columns: columns(present),
    rows: providers,
    key: (provider) => provider.name,
    tone: ({ state }) =>
      providerTone(state) === 'good' || providerTone(state) === 'idle' ? undefined : providerTone(state),
  });
}

function columns(present: Present): Column<ProviderStatus>[] {
  return [
    {
      title: 'Provider',
      cell: (provider) => [
        link('provider', provider.name),
        provider.driver === null
          ? undefined
          : h('span', { class: 'quiet below driver', title: provider.driver }, name(provider.driver)),
      ],
    },
    {
      title: 'State',
      cell: ({ state, since, reason, lastError }) => [
        providerBadge(state),
        since === null || state === 'serving' ? undefined : h('span', { class: 'quiet' }, ' for ', age(since, present)),
        reason !== null ? h('span', { class: 'reason below' }, ...withCode(reason)) : undefined,
        reason === null && lastError !== null
          ? h('span', { class: 'quiet below' }, lastError.text, ', ', age(lastError.time, present), ' ago')
          : undefined,
      ],
    },
    { title: 'Nodes', cell: ({ groups, name: provider }) => groupBar(groups, { provider }) },
    { title: 'Use', cell: (provider) => [fullest(provider)] },
    { title: 'Failed launches', numeric: true, cell: ({ launches }) => launchesText(launches) },
    {
      title: 'API',
      numeric: true,
      wideOnly: true,
      cell: ({ api }) =>
        api === null || api.calls === 0
          ? ['–']
          : [
              api.p95 === null ? '' : `p95 ${durationText(api.p95)}`,
              h(
                'span',
                { class: isBad(api.failed, api.calls) ? 'below bad-text' : 'quiet below' },
                `${shareText(api.failed, api.calls)} of ${counted(api.calls, 'call')} failed`,
              ),
            ],
    },
  ];
}

/** Share of failures from which on it is emphasised. */
const BAD_SHARE = 0.05;

export function isBad(failed: number, all: number): boolean {
  return failed > 0 && failed >= all * BAD_SHARE;
}

export function launchesText(launches: ProviderStatus['launches']): Child[] {
  if (launches === null || launches.started === 0) return ['–'];
  const { started, failed, windowSeconds } = launches;
  return [
    failed === 0 ? '0' : h('b', { class: isBad(failed, started) ? 'bad-text' : undefined }, shareText(failed, started)),
    h('span', { class: 'quiet below' }, `${numberText(failed)} of ${numberText(started)} in ${ageText(windowSeconds)}`),
  ];
}

/** Returns the meter of the resource that is closest to its limit, over the provider and its pools. */
function fullest({ usage, pools }: ProviderStatus): HTMLElement | undefined {
  const all = [
    ...usage.map((each) => ({ ...each, of: 'quota' })),
    ...pools.flatMap((pool) => pool.usage.map((each) => ({ ...each, of: pool.name }))),
  ].filter(({ limit }) => limit !== null);
  const share = ({ used, limit }: (typeof all)[number]): number => (limit === null || limit === 0 ? 1 : used / limit);
  const [most] = all.sort((a, b) => share(b) - share(a));
  return most === undefined ? undefined : meter(most, `${most.resource} of ${most.of}`);
}

/** The pages of providers and their pools. */

import { h, type Child } from './dom.js';
import { labelChip, link, name, pageHref } from './links.js';
import type {
  MachineStatus,
  OfferStatus,
  PoolStatus,
  ProviderDocument,
  ProvidersDocument,
  ProviderStatus,
} from './model.js';
import { providerCharts } from './history.js';
import type { View } from './page.js';
import { missingPage } from './missing.js';
import { requestColumns } from './rows.js';
import { table, type Column } from './table.js';
import { ageText, counted, durationText, numberText, shareText } from './text.js';
import { offerBadge, providerBadge, providerTone } from './tones.js';
import { age, badge, bar, facts, groupBar, groupLegend, meter, nothing, section, type Present } from './widgets.js';

const MAX_LABELS = 12;

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
        provider.driver === null ? undefined : h('span', { class: 'quiet below' }, name(provider.driver)),
      ],
    },
    {
      title: 'State',
      cell: ({ state, since, reason, lastError }) => [
        providerBadge(state),
        since === null || state === 'serving' ? undefined : h('span', { class: 'quiet' }, ' for ', age(since, present)),
        reason !== null ? h('span', { class: 'reason below' }, reason) : undefined,
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

function isBad(failed: number, all: number): boolean {
  return failed > 0 && failed >= all * BAD_SHARE;
}

function launchesText(launches: ProviderStatus['launches']): Child[] {
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
  return most === undefined
    ? undefined
    : meter(
        { ...most, resource: `${most.resource}, ${most.of}` === '' ? most.resource : most.resource },
        `${most.resource} of ${most.of}`,
      );
}

export const providerPage: View<ProviderDocument> = {
  title: ({ id }) => `Provider ${id ?? ''}`,
  draw: ({ document: { provider, requests, history }, present, route }) =>
    provider === null
      ? missingPage(route)
      : [
          h('h1', { tabindex: -1 }, 'Provider ', name(provider.name), ' ', providerBadge(provider.state)),
          health(provider, present),
          overview(provider, present),
          failures(provider, present),
          section(
            'Pools',
            counted(provider.pools.length, 'pool'),
            provider.pools.length === 0
              ? nothing('No launcher serves a pool of this provider.')
              : h(
                  'div',
                  { class: 'cards' },
                  ...provider.pools.map((pool) => poolCard(provider.name, pool, route.query.get('pool'))),
                ),
          ),
          ...provider.pools.filter(({ offers }) => offers.length > 0).map((pool) => offers(pool, present)),
          ...provider.pools
            .filter(({ outOfService }) => outOfService.length > 0)
            .map((pool) => machines(pool, present)),
          providerCharts(history),
          requests.length === 0
            ? undefined
            : section(
                'Waiting requests',
                h('a', { href: pageHref(['requests'], { state: 'waiting' }) }, 'all waiting requests'),
                table({
                  caption: `Requests of ${provider.name}`,
                  columns: requestColumns(present),
                  rows: requests,
                  key: (row) => row.id,
                }),
              ),
        ],
};

function health({ state, reason, since, lastError }: ProviderStatus, present: Present): Child {
  const tone = providerTone(state);
  if (tone === 'good' || (tone === 'idle' && reason === null)) return undefined;
  return h(
    'div',
    { class: `callout ${tone}`, 'data-key': 'health' },
    h(
      'p',
      {},
      h('b', {}, reason ?? providerBadge(state).textContent),
      since === null ? undefined : h('span', { class: 'quiet' }, ' – for ', age(since, present)),
    ),
    lastError === null || lastError.text === reason
      ? undefined
      : h(
          'p',
          {},
          'Last error: ',
          h('q', {}, lastError.text),
          h('span', { class: 'quiet' }, ' ', age(lastError.time, present), ' ago'),
        ),
  );
}

function overview(provider: ProviderStatus, present: Present): HTMLElement {
  const { driver, driverVersion, groups, launches, api, toNode, since, state } = provider;
  return h(
    'div',
    { class: 'columns', 'data-key': 'facts' },
    h(
      'div',
      { class: 'card' },
      groupLegend(groups, { provider: provider.name }),
      facts(
        ['Driver', driver === null ? undefined : [name(`${driver} ${driverVersion ?? ''}`)]],
        ['In this state', since === null ? undefined : [age(since, present), state === 'serving' ? '' : '']],
        ['Launch, p50', toNode.p50 === null ? undefined : [durationText(toNode.p50)]],
        ['Launch, p95', toNode.p95 === null ? undefined : [durationText(toNode.p95)]],
        ['Failed launches', launches === null ? undefined : launchesText(launches)],
      ),
    ),
    api === null
      ? undefined
      : h(
          'div',
          { class: 'card' },
          h('h3', {}, 'Cloud API ', h('span', { class: 'quiet' }, `last ${ageText(api.windowSeconds)}`)),
          facts(
            ['Calls', [numberText(api.calls)]],
            [
              'Failed',
              [
                h(
                  'span',
                  { class: isBad(api.failed, api.calls) ? 'bad-text' : undefined },
                  `${numberText(api.failed)} (${shareText(api.failed, api.calls)})`,
                ),
              ],
            ],
            ['Throttled', [numberText(api.throttled)]],
            ['Latency, p50', api.p50 === null ? undefined : [durationText(api.p50)]],
            ['Latency, p95', api.p95 === null ? undefined : [durationText(api.p95)]],
          ),
        ),
    provider.usage.length === 0
      ? undefined
      : h(
          'div',
          { class: 'card' },
          h('h3', {}, 'Cloud quota'),
          ...provider.usage.map((each) => meter(each, `${each.resource} of the cloud quota`)),
        ),
  );
}

function failures({ failures: all }: ProviderStatus, present: Present): HTMLElement | undefined {
  if (all.length === 0) return undefined;
  const most = Math.max(...all.map(({ count }) => count));
  return section(
    'Failed launches',
    'by kind of error',
    table({
      caption: 'Failed launches by kind of error',
      columns: [
        {
          title: 'Launches',
          numeric: true,
          cell: ({ count }) => [h('b', { class: 'count' }, numberText(count)), bar(count / most, 'full')],
        },
        { title: 'Error', cell: ({ code }) => [h('code', {}, code)] },
        { title: 'Last message', cell: ({ text }) => [text] },
        { title: 'Last', numeric: true, cell: ({ last }) => [age(last, present), ' ago'] },
      ],
      rows: all,
      key: ({ code }) => code,
    }),
  );
}

function poolCard(provider: string, pool: PoolStatus, current: string | null): HTMLElement {
  const { name: poolName, launchers, labels, usage, waiting, deferred, paused, outOfCapacity, obstacles } = pool;
  return h(
    'article',
    { class: current === poolName ? 'card current' : 'card', 'data-key': poolName, id: `pool-${poolName}` },
    h(
      'h3',
      {},
      'Pool ',
      name(poolName),
      ' ',
      outOfCapacity ? badge('cloud out of capacity', 'bad') : paused ? badge('full', 'busy') : undefined,
    ),
    ...usage.map((each) => meter(each, `${each.resource} of pool ${poolName}`)),
    h(
      'p',
      { class: 'quiet' },
      h('a', { href: pageHref(['nodes'], { pool: `${provider}/${poolName}` }) }, 'nodes'),
      ' · ',
      waiting === 0
        ? 'no request waits here'
        : h(
            'a',
            { href: pageHref(['requests'], { state: 'waiting', pool: `${provider}/${poolName}` }) },
            `${counted(waiting, 'request')} ${waiting === 1 ? 'waits' : 'wait'} here`,
          ),
      deferred === 0 ? undefined : ` · ${counted(deferred, 'request')} deferred after a failure`,
    ),
    h(
      'p',
      { class: 'quiet' },
      launchers.length === 0 ? 'no launcher serves it' : 'on ',
      ...launchers.flatMap((host, index) => [index === 0 ? undefined : ', ', link('program', host)]),
    ),
    h(
      'p',
      { class: 'chips' },
      ...labels.slice(0, MAX_LABELS).map((label) => labelChip(label)),
      labels.length > MAX_LABELS
        ? h('span', { class: 'quiet' }, `and ${numberText(labels.length - MAX_LABELS)} more`)
        : undefined,
    ),
    ...obstacles.map(({ label, reason }) =>
      h('p', { class: 'bad-text', 'data-key': `obstacle ${label}` }, link('label', label), `: ${reason}`),
    ),
  );
}

function offers({ name: pool, offers: all }: PoolStatus, present: Present): HTMLElement {
  const order = { open: 0, 'half-open': 1, closed: 2 } as const;
  return section(
    `Offers of pool ${pool}`,
    'the health of what the pool can order',
    table({
      caption: `Offers of pool ${pool}`,
      columns: [
        { title: 'Offer', cell: (offer: OfferStatus) => [name(offer.name)] },
        { title: 'Health', cell: ({ state }) => [offerBadge(state)] },
        { title: 'Since', numeric: true, cell: ({ since }) => (since === null ? [] : [age(since, present)]) },
        { title: 'Failures', numeric: true, cell: ({ failures: count }) => [numberText(count)] },
        { title: 'Reason', cell: ({ reason }) => [reason ?? ''] },
        {
          title: 'Next trial',
          numeric: true,
          cell: ({ nextProbe }) => (nextProbe === null ? [] : ['in ', age(nextProbe, present)]),
        },
      ],
      rows: [...all].sort((a, b) => order[a.state] - order[b.state] || (a.name < b.name ? -1 : 1)),
      key: (offer) => offer.name,
      tone: ({ state }) => (state === 'open' ? 'bad' : state === 'half-open' ? 'busy' : undefined),
    }),
  );
}

function machines({ name: pool, outOfService }: PoolStatus, present: Present): HTMLElement {
  return section(
    `Machines of pool ${pool} out of service`,
    undefined,
    table({
      caption: `Machines of pool ${pool} out of service`,
      columns: [
        { title: 'Machine', cell: ({ machine }: MachineStatus) => [name(machine)] },
        { title: 'Since', numeric: true, cell: ({ since }) => [age(since, present)] },
        { title: 'Nodes', numeric: true, cell: ({ slots }) => [numberText(slots)] },
        { title: 'Reason', cell: ({ reason }) => [reason] },
        { title: 'Labels', cell: ({ labels }) => labels.map((label) => labelChip(label)) },
      ],
      rows: outOfService,
      key: ({ machine }) => machine,
      tone: () => 'bad',
    }),
  );
}

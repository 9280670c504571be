/** The page of a provider with its pools. */

import { h, type Child } from './dom.js';
import { name, pageHref } from './links.js';
import type { ProviderDocument, ProviderStatus } from './model.js';
import { providerCharts } from './history.js';
import type { View } from './page.js';
import { missingPage } from './missing.js';
import { machineTable, offerTable, poolCard } from './pools.js';
import { isBad, launchesText } from './page-providers.js';
import { requestColumns } from './rows.js';
import { table } from './table.js';
import { ageText, counted, durationText, numberText, shareText } from './text.js';
import { providerBadge, providerTone } from './tones.js';
import { age, bar, facts, groupLegend, meter, nothing, section, type Present } from './widgets.js';

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
          ...provider.pools.filter(({ offers }) => offers.length > 0).map((pool) => offerTable(pool, present)),
          ...provider.pools
            .filter(({ outOfService }) => outOfService.length > 0)
            .map((pool) => machineTable(pool, present)),
          providerCharts(history, present.now()),
          requests.length === 0
            ? undefined
            : section(
                'Requests',
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
  const { driver, driverVersion, groups, launches, api, toNode, since } = provider;
  return h(
    'div',
    { class: 'columns', 'data-key': 'facts' },
    h(
      'div',
      { class: 'card' },
      groupLegend(groups, { provider: provider.name }),
      facts(
        ['Driver', driver === null ? undefined : [name(`${driver} ${driverVersion ?? ''}`)]],
        ['In this state', since === null ? undefined : [age(since, present)]],
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

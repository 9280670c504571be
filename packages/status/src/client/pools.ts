import { h } from './dom.js';
import { labelChip, link, name, pageHref } from './links.js';
import type { MachineStatus, OfferStatus, PoolStatus } from './model.js';
import { table } from './table.js';
import { counted, numberText } from './text.js';
import { offerBadge } from './tones.js';
import { age, badge, meter, section, type Present } from './widgets.js';

const MAX_LABELS = 12;

/** Returns a card with the use, the labels and the obstacles of a pool. */
export function poolCard(provider: string, pool: PoolStatus, current: string | null): HTMLElement {
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

export function offerTable({ name: pool, offers: all }: PoolStatus, present: Present): HTMLElement {
  const order = { open: 0, 'half-open': 1, closed: 2 } as const;
  return section(
    `Offers of pool ${pool}`,
    'the zones and machine types of the pool, and their health',
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

/** Returns the machines of a pool that no launcher can use, or only some. */
export function machineTable({ name: pool, outOfService }: PoolStatus, present: Present): HTMLElement {
  return section(
    `Machines of pool ${pool} that launchers cannot use`,
    undefined,
    table({
      caption: `Machines of pool ${pool} that launchers cannot use`,
      columns: [
        { title: 'Machine', cell: ({ machine }: MachineStatus) => [name(machine)] },
        { title: 'Since', numeric: true, cell: ({ since }) => [age(since, present)] },
        { title: 'Nodes', numeric: true, cell: ({ slots }) => [numberText(slots)] },
        { title: 'Reason', cell: ({ reason }) => [reason] },
        { title: 'Launchers', cell: ({ onlyFor }) => [onlyFor.length === 0 ? 'all' : onlyFor.join(', ')] },
        { title: 'Labels', cell: ({ labels }) => labels.map((label) => labelChip(label)) },
      ],
      rows: outOfService,
      key: ({ machine }) => machine,
      tone: () => 'bad',
    }),
  );
}

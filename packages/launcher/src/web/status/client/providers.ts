/** The section of providers and their pools, with their use of resources. */

import { h, type Child } from './dom.js';
import type { NodeGroup, PoolStatus, ProviderStatus } from './status.js';
import { counted, numberText } from './text.js';
import { badge, groupClass, listed, meter, nothing } from './widgets.js';

const STATES: Readonly<Record<ProviderStatus['state'], HTMLElement>> = {
  serving: badge('serving', 'good'),
  starting: badge('starting', 'busy'),
  degraded: badge('degraded', 'busy'),
  unreachable: badge('unreachable', 'bad'),
  misconfigured: badge('misconfigured', 'bad'),
  broken: badge('broken', 'bad'),
  elsewhere: badge('other launcher', 'idle'),
  gone: badge('served by nobody', 'bad'),
};

export function providersSection(providers: readonly ProviderStatus[]): Child[] {
  if (providers.length === 0) return [nothing('The configuration has no providers.')];
  return [h('div', { class: 'cards' }, ...providers.map(card))];
}

function card({ name, driver, driverVersion, state, groups, usage, pools, reason }: ProviderStatus): HTMLElement {
  const by = driver === null ? undefined : `driver ${driver}${driverVersion === null ? '' : ` ${driverVersion}`}`;
  const numbers = (Object.entries(groups) as [NodeGroup, number][]).filter(([, count]) => count > 0);
  return h(
    'article',
    { class: 'card', 'data-key': name },
    h('h3', {}, name, ' ', STATES[state].cloneNode(true)),
    by === undefined ? undefined : h('p', { class: 'quiet' }, by),
    reason === null ? undefined : h('p', { class: 'problem' }, reason),
    h(
      'ul',
      { class: 'legend small', 'aria-label': `Nodes of ${name}` },
      ...(numbers.length === 0
        ? [h('li', {}, 'no nodes')]
        : numbers.map(([group, count]) =>
            h('li', { class: groupClass(group), 'data-key': group }, h('b', {}, numberText(count)), ` ${group}`),
          )),
    ),
    usage.length === 0
      ? undefined
      : h(
          'div',
          { class: 'pool', 'data-key': 'cloud' },
          h('h4', {}, 'Cloud quota'),
          ...usage.map((each) => meter(each)),
        ),
    ...pools.map(poolOf),
  );
}

function poolOf({ name, launchers, labels, usage, waiting, notes, obstacles }: PoolStatus): HTMLElement {
  const facts = [counted(labels, 'label'), launchers.length === 0 ? 'not registered' : `on ${listed(launchers)}`];
  if (waiting > 0) facts.push(`${counted(waiting, 'request')} for which there is no room`);
  return h(
    'div',
    { class: 'pool', 'data-key': `pool ${name}` },
    h('h4', {}, 'Pool ', name),
    ...usage.map((each) => meter(each)),
    h('p', { class: 'quiet' }, facts.join(' · ')),
    ...notes.map((note) => h('p', { class: 'note' }, note)),
    ...obstacles.map(({ label, reason }) =>
      h(
        'p',
        { class: 'problem', 'data-key': label },
        h('a', { href: `explain/label/${encodeURIComponent(label)}` }, label),
        `: ${reason}`,
      ),
    ),
  );
}

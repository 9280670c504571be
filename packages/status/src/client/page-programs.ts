/** The page of launchers and builders. */

import { h, type Child } from './dom.js';
import { link, name } from './links.js';
import type { ComponentStatus, ProgramsDocument } from './model.js';
import type { View } from './page.js';
import { bytesText, counted, durationText } from './text.js';
import { age, badge, facts, nothing, section, type Present } from './widgets.js';

export const programsPage: View<ProgramsDocument> = {
  title: () => 'Launchers and builders',
  draw: ({ document: { components }, present, route }) => {
    const current = route.query.get('host');
    const cards = (kind: ComponentStatus['kind'], empty: Child[]): Child => {
      const all = components.filter((each) => each.kind === kind);
      return all.length === 0
        ? nothing(...empty)
        : h('div', { class: 'cards' }, ...all.map((component) => card(component, current, present)));
    };
    return [
      h('h1', { tabindex: -1 }, 'Launchers and builders'),
      section('Launchers', undefined, cards('launcher', ['No launcher is registered.'])),
      section(
        'Builders',
        undefined,
        cards('builder', [
          'No builder is registered: images are neither built nor uploaded. Start ',
          h('code', {}, 'nodepool-builder'),
          ' if the configuration has disk images.',
        ]),
      ),
    ];
  },
};

function card(component: ComponentStatus, current: string | null, present: Present): HTMLElement {
  const { kind, hostname, state, version, configuration, drivers, pools, self, started, webUrl } = component;
  return h(
    'article',
    { class: current === hostname ? 'card current' : 'card', 'data-key': `${kind} ${hostname} ${version}` },
    h(
      'h3',
      {},
      name(hostname),
      ' ',
      badge(state, state === 'running' ? 'good' : 'busy'),
      self ? h('span', { class: 'quiet' }, ' serves this page') : undefined,
    ),
    facts(
      ['Version', [name(version)]],
      ['Configuration', configuration === null ? undefined : [name(configuration)]],
      ['Running for', started === null ? undefined : [age(started, present)]],
      [
        'Pools',
        pools.length === 0
          ? undefined
          : pools.flatMap((pool, index) => [index === 0 ? undefined : ', ', link('pool', pool)]),
      ],
      ...measured(component, present),
      ['Own page', webUrl === null ? undefined : [h('a', { href: webUrl, rel: 'noreferrer' }, webUrl)]],
    ),
    h('h4', {}, counted(drivers.length, 'driver')),
    h(
      'ul',
      { class: 'plain' },
      ...drivers.map((driver) =>
        h(
          'li',
          { 'data-key': driver.name },
          name(driver.name),
          ' ',
          h('span', { class: 'quiet' }, name(driver.version)),
        ),
      ),
    ),
  );
}

function measured(
  { eventLoopP99, heapBytes, zookeeper }: ComponentStatus,
  present: Present,
): [string, Child[] | undefined][] {
  return [
    ['Event loop delay, p99', eventLoopP99 === null ? undefined : [durationText(eventLoopP99)]],
    ['Heap', heapBytes === null ? undefined : [bytesText(heapBytes)]],
    [
      'ZooKeeper',
      zookeeper === null
        ? undefined
        : [
            badge(zookeeper.state, zookeeper.state === 'connected' ? 'good' : 'bad'),
            zookeeper.server === null ? undefined : ' ',
            zookeeper.server === null ? undefined : name(zookeeper.server),
            zookeeper.since === null
              ? undefined
              : h('span', { class: 'quiet' }, ' for ', age(zookeeper.since, present)),
          ],
    ],
    [
      'ZooKeeper latency',
      zookeeper === null || zookeeper.latencyP50 === null
        ? undefined
        : [
            `p50 ${durationText(zookeeper.latencyP50)}`,
            zookeeper.latencyP95 === null ? '' : `, p95 ${durationText(zookeeper.latencyP95)}`,
          ],
    ],
  ];
}

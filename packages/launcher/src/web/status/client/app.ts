/** The status page: keeps the sections that the launcher sends, and redraws those that change. */

import { nodesChart } from './chart.js';
import { every } from './clock.js';
import { connect, type Liveness } from './connection.js';
import { h, show, type Child } from './dom.js';
import { imagesSection } from './images.js';
import { notices } from './notices.js';
import { componentsSection, failuresSection } from './programs.js';
import { providersSection } from './providers.js';
import { requestsSection } from './requests.js';
import type { StatusMessage, StatusSections } from './status.js';
import { exactClockText, numberText } from './text.js';
import { age, growAges, type Present } from './widgets.js';

/** A part of the page, and the sections that it is drawn from. */
interface Part {
  readonly id: string;
  readonly from: readonly (keyof StatusSections)[];
  readonly draw: (status: StatusSections, present: Present) => readonly Child[];
}

const PARTS: readonly Part[] = [
  {
    id: 'host',
    from: ['launcher'],
    draw: ({ launcher: { hostname, version } }) => [h('b', {}, hostname), h('span', { class: 'quiet' }, ` ${version}`)],
  },
  { id: 'notices', from: ['launcher', 'providers'], draw: (status) => notices(status.launcher, status.providers) },
  { id: 'tiles', from: ['nodes', 'requests'], draw: tiles },
  {
    id: 'nodes',
    from: ['nodes', 'history'],
    draw: (status, present) => nodesChart(status.nodes, status.history, present),
  },
  { id: 'requests', from: ['requests'], draw: (status, present) => requestsSection(status.requests, present) },
  { id: 'providers', from: ['providers'], draw: (status) => providersSection(status.providers) },
  { id: 'images', from: ['images'], draw: (status, present) => imagesSection(status.images, present) },
  { id: 'components', from: ['components'], draw: (status) => componentsSection(status.components) },
  { id: 'failures', from: ['failures'], draw: (status, present) => failuresSection(status.failures, present) },
];

const LIVENESS: Readonly<Record<Liveness, string>> = {
  stream: 'live',
  asking: 'live, every few seconds',
  lost: 'the launcher does not answer; trying again',
};

function tiles({ nodes, requests }: StatusSections, present: Present): Child[] {
  const tile = (label: string, value: number, detail: readonly Child[], href: string): HTMLElement =>
    h(
      'a',
      { class: 'tile', href, 'data-key': label },
      h('span', { class: 'quiet' }, label),
      h('b', {}, numberText(value)),
      h('span', { class: 'quiet' }, ...detail),
    );
  const { groups } = nodes;
  return [
    tile('Nodes', nodes.total, [`${numberText(groups.building)} building`], 'node-list'),
    tile('Ready', groups.ready, ['for the next request'], '#nodes-title'),
    tile('In use', groups['in use'], [`${numberText(groups.held)} held`], '#nodes-title'),
    tile(
      'Waiting',
      requests.waiting,
      requests.oldest === null ? ['no request'] : ['oldest ', age(requests.oldest, present)],
      '#requests-title',
    ),
  ];
}

class Page {
  private sections: Partial<StatusSections> = {};
  /** The launcher's clock minus the browser's, in seconds. */
  private ahead = 0;
  private heard: number | undefined;
  private state: Liveness | undefined;
  private readonly present: Present = { now: () => Date.now() / 1000 + this.ahead };

  message({ time, sections }: StatusMessage): void {
    const version = this.sections.launcher?.version;
    if (version !== undefined && sections.launcher !== undefined && sections.launcher.version !== version) {
      // The launcher was upgraded; the page has to be loaded from the new version.
      window.location.reload();
      return;
    }
    this.ahead = time - Date.now() / 1000;
    this.heard = time;
    this.sections = { ...this.sections, ...sections };
    if (isWhole(this.sections)) this.draw(this.sections, new Set(Object.keys(sections)));
    this.tellState();
  }

  liveness(state: Liveness): void {
    this.state = state;
    this.tellState();
  }

  tick(): void {
    growAges(this.present);
  }

  private draw(status: StatusSections, changed: ReadonlySet<string>): void {
    document.title = `${status.launcher.hostname} – Nodepool`;
    for (const { id, from, draw } of PARTS) {
      const element = document.getElementById(id);
      if (element !== null && from.some((section) => changed.has(section))) show(element, draw(status, this.present));
    }
    document.body.dataset.drawn = 'yes';
  }

  private tellState(): void {
    const { state, heard } = this;
    if (state === undefined) return;
    document.body.dataset.state = state;
    const element = document.getElementById('state');
    if (element === null) return;
    const since = state === 'lost' && heard !== undefined ? `, shown as of ${exactClockText(heard)}` : '';
    // Unchanged text is not set again, since screen readers announce every write.
    const text = `${LIVENESS[state]}${since}`;
    if (element.textContent !== text) element.textContent = text;
  }
}

function isWhole(sections: Partial<StatusSections>): sections is StatusSections {
  return PARTS.every(({ from }) => from.every((name) => sections[name] !== undefined));
}

const page = new Page();
connect({ message: (message) => page.message(message), liveness: (state) => page.liveness(state) });
every(1000, () => page.tick());

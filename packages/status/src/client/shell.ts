/** The frame of all pages: the navigation, the search, and the state of the connection. */

import type { Liveness } from './connection.js';
import { h, show } from './dom.js';
import { hrefOf, pageHref } from './links.js';
import type { LauncherStatus } from './model.js';
import type { Route } from './route.js';
import { counted, exactClockText, numberText } from './text.js';
import { hidden } from './widgets.js';

const LIVENESS: Readonly<Record<Liveness, string>> = {
  stream: 'live',
  asking: 'live, every few seconds',
  lost: 'the launcher does not answer; trying again',
};

interface Entry {
  readonly page: string;
  readonly title: string;
  readonly count?: (launcher: LauncherStatus) => number;
  /** Default: the page is always shown. */
  readonly isShown?: (launcher: LauncherStatus | undefined) => boolean;
}

const ENTRIES: readonly Entry[] = [
  { page: '', title: 'Overview' },
  { page: 'requests', title: 'Requests', count: ({ waiting }) => waiting },
  { page: 'nodes', title: 'Nodes', count: ({ nodes }) => nodes },
  { page: 'labels', title: 'Labels' },
  { page: 'providers', title: 'Providers' },
  { page: 'images', title: 'Images' },
  { page: 'github', title: 'GitHub Actions', isShown: (launcher) => (launcher?.scaleSets ?? 0) > 0 },
  { page: 'programs', title: 'Launchers and builders' },
];

const NODE_ID = /^\d{10}$/;
const REQUEST_ID = /^\d{3}-\d{10}$/;

export class Shell {
  private page = '';
  private launcher: LauncherStatus | undefined;
  private state: Liveness | undefined;
  private lastHeard: number | undefined;

  /** Marks the current page in the navigation. */
  locate({ page }: Route): void {
    this.page = page;
    this.drawNavigation();
    // On small screens the navigation scrolls.
    const navigation = document.getElementById('navigation');
    const current = navigation?.querySelector<HTMLElement>('[aria-current]');
    if (navigation != null && current != null) {
      navigation.scrollLeft = current.offsetLeft - (navigation.clientWidth - current.offsetWidth) / 2;
    }
  }

  draw(launcher: LauncherStatus): void {
    const before = this.launcher;
    this.launcher = launcher;
    const host = document.getElementById('host');
    if (host !== null)
      show(host, [h('b', {}, h('bdi', {}, launcher.hostname)), h('span', { class: 'quiet' }, ` ${launcher.version}`)]);
    this.drawNavigation();
    document.body.dataset.zookeeper = launcher.zookeeper;
    this.showState();
    if (before !== undefined && before.problems !== launcher.problems) {
      // Only a changed number is announced: the list itself changes too often for a screen reader.
      const element = document.getElementById('announcement');
      if (element !== null) element.textContent = counted(launcher.problems, 'problem');
    }
  }

  liveness(state: Liveness): void {
    this.state = state;
    this.showState();
  }

  updated(time: number): void {
    this.lastHeard = time;
    this.showState();
  }

  /** Handles the search: an id opens its page, other text the list of matching nodes. `/` focuses the field. */
  watchSearch(): void {
    const form = document.getElementById('search');
    const field = document.querySelector<HTMLInputElement>('#search input');
    if (form === null || field === null) return;
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      const text = field.value.trim();
      if (text === '') return;
      window.location.hash = targetOf(text);
      field.value = '';
    });
    document.addEventListener('keydown', (event) => {
      const { target } = event;
      const typing = target instanceof HTMLInputElement || target instanceof HTMLSelectElement;
      if (event.key !== '/' || typing || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      field.focus();
    });
  }

  private drawNavigation(): void {
    const navigation = document.getElementById('navigation');
    const { launcher } = this;
    if (navigation === null) return;
    show(
      navigation,
      ENTRIES.filter(({ page, isShown }) => page === this.page || isShown?.(launcher) !== false).map(
        ({ page, title, count }) => {
          const amount = launcher === undefined ? undefined : count?.(launcher);
          const problems = page === '' ? (launcher?.problems ?? 0) : 0;
          return h(
            'a',
            {
              href: page === '' ? '#/' : pageHref([page]),
              'aria-current': page === this.page ? 'page' : undefined,
              'data-key': title,
            },
            title,
            amount === undefined || amount === 0
              ? undefined
              : h('span', { class: 'count' }, numberText(amount), page === 'requests' ? hidden(' waiting') : undefined),
            problems === 0
              ? undefined
              : h(
                  'span',
                  { class: 'count bad' },
                  numberText(problems),
                  hidden(problems === 1 ? ' problem' : ' problems'),
                ),
          );
        },
      ),
    );
  }

  private showState(): void {
    const { state, lastHeard } = this;
    if (state === undefined) return;
    document.body.dataset.state = state;
    const element = document.getElementById('state');
    if (element === null) return;
    const since = state === 'lost' && lastHeard !== undefined ? `, shown as of ${exactClockText(lastHeard)}` : '';
    // Unchanged text is not set again, since screen readers announce every write.
    const isStale = state !== 'lost' && this.launcher !== undefined && this.launcher.zookeeper !== 'connected';
    const text = isStale ? 'ZooKeeper is not connected' : `${LIVENESS[state]}${since}`;
    if (element.textContent !== text) element.textContent = text;
  }
}

function targetOf(text: string): string {
  if (NODE_ID.test(text)) return hrefOf({ kind: 'node', id: text });
  if (REQUEST_ID.test(text)) return hrefOf({ kind: 'request', id: text });
  return pageHref(['nodes'], { q: text });
}

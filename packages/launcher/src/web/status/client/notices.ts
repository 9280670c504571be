/** The notices at the top of the page: conditions that need an operator's attention. */

import { h, type Child } from './dom.js';
import type { LauncherStatus, ProviderStatus } from './status.js';
import { counted } from './text.js';

export function notices(launcher: LauncherStatus, providers: readonly ProviderStatus[]): Child[] {
  const broken = providers.filter(({ state }) => state === 'broken');
  const gone = providers.filter(({ state }) => state === 'gone');
  return [
    zookeeper(launcher),
    configuration(launcher),
    ...broken.map(({ name, driver, reason }) =>
      notice('bad', `Provider ${name} is out of service: its driver ${driver ?? ''} cannot be used.`, [reason ?? '']),
    ),
    ...gone.map(({ name }) =>
      notice('warn', `Provider ${name} has nodes, but no launcher serves it.`, [
        `Put it back into the configuration, or remove what is left of it with \`nodepool erase ${name}\`.`,
      ]),
    ),
    launcher.unreadableCount === 0
      ? undefined
      : notice(
          'warn',
          `${counted(launcher.unreadableCount, 'record')} in ZooKeeper cannot be read.`,
          launcher.unreadable.map(({ path, reason }) => `${path}: ${reason}`),
          launcher.unreadableCount - launcher.unreadable.length,
        ),
    launcher.ready || !launcher.complete
      ? undefined
      : notice('info', 'Providers are starting; the launcher is not ready yet.', []),
  ];
}

function zookeeper({ zookeeper: state, complete }: LauncherStatus): HTMLElement | undefined {
  if (state !== 'connected') {
    return notice('bad', `There is no connection to ZooKeeper (${state}).`, [
      'What is shown is as it was when it was lost. Nodes and requests wait until it is back; see the log of the launcher for the servers that it tries.',
    ]);
  }
  if (complete) return undefined;
  return notice('warn', 'The records are being read from ZooKeeper; what is shown is not complete yet.', []);
}

function configuration({ configurationProblems: problems, configurationProblemCount: all }: LauncherStatus): Child {
  if (all === 0) return undefined;
  return notice(
    'bad',
    `The changed configuration was refused for ${counted(all, 'problem')}; the one before stays in force.`,
    problems,
    all - problems.length,
  );
}

function notice(kind: 'bad' | 'warn' | 'info', title: string, details: readonly string[], more = 0): HTMLElement {
  const lines = details.filter((detail) => detail !== '').map((detail) => h('li', {}, detail));
  if (more > 0) lines.push(h('li', {}, `and ${more} more`));
  return h(
    'div',
    { class: `notice ${kind}`, 'data-key': title },
    h('strong', {}, title),
    lines.length === 0 ? undefined : h('ul', {}, ...lines),
  );
}

/** Slurm's controller as its command `scontrol` shows and changes it. */

import { execFile } from 'node:child_process';
import { reasonOf, sleep, Slots, printable, type Clock } from '@nodepool/core';
import { CommandError } from '../command-context.js';

/** Limits of one call of scontrol. Its listing has about a kilobyte for each node. */
const CALL_TIMEOUT_MS = 60_000;
const MAX_OUTPUT_BYTES = 100_000_000;
/** Time (ms) for which calls are repeated while the controller restarts. */
const RETRY_FOR_MS = 120_000;
const RETRY_MS = 2000;
const UNREACHABLE = /Unable to contact slurm controller|Connection (?:refused|reset|timed out)|Zero Bytes/i;
const NOT_FOUND = /not found/i;
/** Calls at once. */
const PARALLEL = 10;
/** Limit (characters) of the reasons that Slurm stores. */
const REASON_LENGTH = 200;

/**
 * Life of a cloud node in Slurm. A node that Slurm powers down, or has powered down, is `off`. One whose power-down is
 * only requested still runs jobs, so it is `on`.
 */
export type Power = 'off' | 'starting' | 'on';

export interface SlurmNode {
  readonly name: string;
  readonly power: Power;
  readonly isCloud: boolean;
  /** The reason if Slurm has marked the node down because it did not start, or this program has; else undefined. */
  readonly down: string | undefined;
}

/** The cluster, as its leases name it. */
export interface Cluster {
  readonly cluster: string;
  /** Host of the first controller, which distinguishes clusters that have the same name. */
  readonly controller: string;
}

export interface SlurmOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly interrupted: AbortSignal;
}

interface Answer {
  readonly output: string;
  /** The message of scontrol if it has failed. */
  readonly failure?: string;
}

export class Slurm {
  private readonly slots = new Slots(PARALLEL);

  constructor(private readonly options: SlurmOptions) {}

  async cluster(): Promise<Cluster> {
    const config = await this.call('show', 'config');
    const [, cluster] = /^ClusterName\s*=\s*(\S+)/m.exec(config) ?? [];
    const [, controller] = /^SlurmctldHost(?:\[0\])?\s*=\s*([^\s(,]+)/m.exec(config) ?? [];
    if (cluster === undefined || controller === undefined) {
      throw new CommandError('scontrol show config names no cluster and no controller');
    }
    return { cluster, controller };
  }

  /** Resolves with the names of a hostlist expression, such as `cloud[1-3]`. */
  async hostnames(expression: string): Promise<readonly string[]> {
    // Without `--`, the expression could be an option.
    if (expression.startsWith('-')) throw new CommandError(`${expression} is not a list of nodes`);
    return (await this.call('show', 'hostnames', expression)).split('\n').filter((name) => name !== '');
  }

  /**
   * Resolves with the nodes by name. Slurm hides cloud nodes that are off, unless `PrivateData=cloud` is set; their
   * names come from the partitions.
   */
  async nodes(): Promise<ReadonlyMap<string, SlurmNode>> {
    const shown = (await this.call('--all', '--oneliner', 'show', 'node')).split('\n').flatMap(nodeOf);
    const nodes = new Map(shown.map((node) => [node.name, node]));
    const partitions = await this.call('--all', '--oneliner', 'show', 'partition');
    const lists = [...partitions.matchAll(/ Nodes=(\S+)/g)].flatMap(([, list = '']) =>
      list === '(null)' || list === 'ALL' ? [] : [list],
    );
    for (const name of lists.length === 0 ? [] : await this.hostnames(lists.join(','))) {
      if (!nodes.has(name)) nodes.set(name, { name, power: 'off', isCloud: true, down: undefined });
    }
    return nodes;
  }

  /** Resolves with one node; undefined if Slurm does not know it, or hides it because it is off. */
  async node(name: string): Promise<SlurmNode | undefined> {
    const { output, failure } = await this.answer(['--all', '--oneliner', 'show', 'node', name]);
    if (failure === undefined) return output.split('\n').flatMap(nodeOf)[0];
    if (NOT_FOUND.test(`${output} ${failure}`)) return undefined;
    throw refusal(['show', 'node', name], failure);
  }

  async setAddress(name: string, address: string, hostname: string): Promise<void> {
    await this.call('update', `nodename=${name}`, `nodeaddr=${address}`, `nodehostname=${hostname}`);
  }

  /**
   * Marks a node down, so that Slurm requeues its jobs, and powers it down, after which it can be resumed again. Slurm
   * then calls its SuspendProgram.
   */
  async fail(name: string, reason: string): Promise<void> {
    const text = printable(`nodepool: ${reason}`).replaceAll('"', "'").slice(0, REASON_LENGTH);
    await this.call('update', `nodename=${name}`, 'state=down', `reason=${text}`);
    await this.reset(name);
  }

  /** Powers a node down, and makes it usable again if it is down. */
  async reset(name: string): Promise<void> {
    await this.call('update', `nodename=${name}`, 'state=power_down_force');
  }

  /** Resolves with the output of scontrol. Rejects with `CommandError` if it fails. */
  private async call(...args: readonly string[]): Promise<string> {
    const { output, failure } = await this.answer(args);
    if (failure !== undefined) throw refusal(args, failure);
    return output;
  }

  /** Runs scontrol, again and again while the controller does not answer. */
  private async answer(args: readonly string[]): Promise<Answer> {
    const { clock, interrupted } = this.options;
    for (const end = clock.monotonic() + RETRY_FOR_MS; ;) {
      const answer = await this.slots.run(interrupted, () => this.attempt(args));
      const isAway = answer.failure !== undefined && UNREACHABLE.test(answer.failure);
      if (!isAway || clock.monotonic() > end) return answer;
      await sleep(clock, RETRY_MS, interrupted);
    }
  }

  private attempt(args: readonly string[]): Promise<Answer> {
    const { env, interrupted } = this.options;
    const limits = { timeout: CALL_TIMEOUT_MS, maxBuffer: MAX_OUTPUT_BYTES, signal: interrupted };
    return new Promise((resolve) => {
      execFile('scontrol', args, { env, ...limits, encoding: 'utf8' }, (error, output, errors) => {
        resolve(
          error === null ? { output } : { output, failure: errors.trim() === '' ? reasonOf(error) : errors.trim() },
        );
      });
    });
  }
}

function refusal(args: readonly string[], failure: string): CommandError {
  return new CommandError(printable(`scontrol ${args.join(' ')}: ${failure}`));
}

/** Returns the node of a line of `scontrol --oneliner show node`. */
function nodeOf(line: string): readonly SlurmNode[] {
  // Texts of operators, such as the reason, come after these fields.
  const field = (name: string): string => new RegExp(`(?:^| )${name}=(\\S+)`).exec(line)?.[1] ?? '';
  const name = field('NodeName');
  if (name === '') return [];
  const flags = field('State').replaceAll('*', '').split('+');
  const [, reason = ''] = / Reason=(.*?)(?: \[|$)/.exec(line) ?? [];
  const down = flags.includes('DOWN') && /^(?:ResumeTimeout reached|nodepool: )/.test(reason) ? reason : undefined;
  return [{ name, power: powerOf(flags), isCloud: flags.includes('CLOUD'), down }];
}

function powerOf(flags: readonly string[]): Power {
  if (['POWERED_DOWN', 'POWERING_DOWN'].some((flag) => flags.includes(flag))) return 'off';
  return flags.includes('POWERING_UP') ? 'starting' : 'on';
}

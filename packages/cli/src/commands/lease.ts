/** `nodepool lease ACTION`: leases of nodes through a gateway, without ZooKeeper. */

import { deadlineSignal, reasonOf, systemClock, TimerQueue, printable, type JsonValue } from '@nodepool/core';
import type { LeaseClient, LeaseDocument, LeaseOutcome, LeaseState, NodeDocument } from '@nodepool/requestor/http';
import { createRecordList, type ListColumn } from '@nodepool/store';
import { ExitCode, CommandError, UsageError, type ListFormat, type Output } from '../command-context.js';
import { gatewayClient, gatewayRefusal, leasedTarget, type GatewayOptions } from '../gateway-access.js';
import { printList } from '../print-list.js';
import type { ProcessIo } from '../process-io.js';
import { SSH_FAILED, SshClient } from '@nodepool/daemon/ssh';

export type LeaseAction = 'create' | 'list' | 'show' | 'renew' | 'release' | 'ssh';

export interface LeaseOptions extends GatewayOptions {
  readonly count?: number;
  readonly name?: string;
  readonly priority?: number;
  readonly lifetime?: number;
  readonly data?: string;
  readonly key?: string;
  readonly wait?: boolean;
  /** Seconds. */
  readonly timeout?: number;
  readonly state?: LeaseState;
  readonly outcome?: LeaseOutcome;
  readonly comment?: string;
  /** Seconds for which the nodes are held. */
  readonly hold?: number;
  readonly node?: string;
  readonly user?: string;
  readonly identity?: string;
  readonly format: ListFormat;
}

/** The actions that have an option. */
const OPTION_ACTIONS: Readonly<Partial<Record<keyof LeaseOptions, readonly LeaseAction[]>>> = {
  count: ['create'],
  name: ['create', 'list'],
  priority: ['create'],
  lifetime: ['create', 'renew'],
  data: ['create'],
  key: ['create'],
  wait: ['create'],
  timeout: ['create'],
  state: ['list'],
  outcome: ['release'],
  comment: ['release'],
  hold: ['release'],
  node: ['ssh'],
  user: ['ssh'],
  identity: ['ssh'],
};

/** Resolves with the exit code. Rejects with `CommandError`. */
export async function lease(
  io: ProcessIo,
  action: LeaseAction,
  names: readonly string[],
  options: LeaseOptions,
): Promise<number> {
  for (const [option, actions] of Object.entries(OPTION_ACTIONS)) {
    if (options[option as keyof LeaseOptions] !== undefined && !actions.includes(action)) {
      throw new UsageError(`--${option} is for ${actions.join(' and ')}, not for ${action}`);
    }
  }
  const command = new LeaseCommand(io, gatewayClient(io, options), options);
  try {
    switch (action) {
      case 'create':
        await command.create(names);
        return ExitCode.done;
      case 'list':
        if (names.length > 0) throw new UsageError('list has no arguments; use --state and --name');
        await command.list();
        return ExitCode.done;
      case 'show':
        await command.each(names, (client, id) => client.get(id, { signal: io.interrupted }));
        return ExitCode.done;
      case 'renew':
        await command.renew(names);
        return ExitCode.done;
      case 'release':
        await command.release(names);
        return ExitCode.done;
      case 'ssh':
        return await command.ssh(names);
    }
  } catch (error) {
    throw gatewayRefusal(error);
  }
}

class LeaseCommand {
  private readonly out: Output;
  private readonly signal: AbortSignal;

  constructor(
    private readonly io: ProcessIo,
    private readonly client: LeaseClient,
    private readonly options: LeaseOptions,
  ) {
    this.out = io.out;
    this.signal = io.interrupted;
  }

  async create(labels: readonly string[]): Promise<void> {
    if (labels.length === 0) throw new UsageError('create needs the labels of the nodes');
    const { count, name, priority, lifetime, data, key, wait = false } = this.options;
    const wanted = {
      labels,
      ...{ ...(count === undefined ? {} : { count }), ...(name === undefined ? {} : { name }) },
      ...(priority === undefined ? {} : { priority }),
      ...(lifetime === undefined ? {} : { lifetime: Math.ceil(lifetime) }),
      ...(data === undefined ? {} : { data: parseData(data) }),
    };
    const { signal } = this;
    const created = await this.client.create(wanted, { signal, ...(key === undefined ? {} : { key }) });
    this.print(wait ? await this.untilReady(created) : created);
  }

  async list(): Promise<void> {
    const { state, name, format } = this.options;
    const leases: LeaseDocument[] = [];
    const filter = { ...(state === undefined ? {} : { state }), ...(name === undefined ? {} : { name }) };
    for await (const found of this.client.list({ ...filter, signal: this.signal })) leases.push(found);
    if (format === 'json') this.out.print(JSON.stringify(leases, undefined, 2));
    else
      printList(
        this.out,
        createRecordList(LEASE_COLUMNS, 'all', leases),
        format,
        leases.map(({ id }) => id),
      );
  }

  async renew(ids: readonly string[]): Promise<void> {
    const { lifetime } = this.options;
    const renewal = { signal: this.signal, ...(lifetime === undefined ? {} : { lifetime: Math.ceil(lifetime) }) };
    await this.each(ids, (client, id) => client.renew(id, renewal));
  }

  async release(ids: readonly string[]): Promise<void> {
    const { outcome, comment, hold } = this.options;
    const end = {
      signal: this.signal,
      ...(outcome === undefined ? {} : { outcome }),
      ...(comment === undefined ? {} : { comment }),
    };
    await this.each(ids, (client, id) =>
      hold === undefined ? client.release(id, end) : client.hold(id, { ...end, seconds: Math.ceil(hold) }),
    );
  }

  /** Does the same with each lease and prints it. */
  async each(ids: readonly string[], work: (client: LeaseClient, id: string) => Promise<LeaseDocument>): Promise<void> {
    if (ids.length === 0) throw new UsageError('this action needs the id of a lease');
    for (const id of ids) this.print(await work(this.client, id));
  }

  /** Logs in to a node of a lease, or runs a command on it. Resolves with the exit status of ssh. */
  async ssh([id, ...command]: readonly string[]): Promise<number> {
    if (id === undefined) throw new UsageError('ssh needs the id of a lease');
    const { node: wanted, user, identity } = this.options;
    const { nodes } = await this.client.get(id, { signal: this.signal });
    const usable = nodes.filter(({ state }) => state === 'in-use');
    const node = wanted === undefined ? usable[0] : usable.find((each) => each.id === wanted);
    if (node === undefined) {
      const which = wanted === undefined ? 'no node in use' : `no node ${wanted} in use`;
      throw new CommandError(`lease ${id} has ${which}; it has: ${nodes.map(nodeText).join(', ') || 'none'}`);
    }
    const target = leasedTarget(node, user);
    const { stderr } = this.io.streams ?? process;
    const ssh = new SshClient(this.io.env, identity, stderr);
    try {
      ssh.trust(target);
      const { code } = await ssh.login(target, command).exited;
      return code ?? SSH_FAILED;
    } finally {
      ssh.close();
    }
  }

  private async untilReady({ id }: LeaseDocument): Promise<LeaseDocument> {
    const { clock = systemClock } = this.io;
    const { timeout = Infinity } = this.options;
    const limited = deadlineSignal({
      timers: new TimerQueue(clock),
      signal: this.signal,
      deadline: clock.monotonic() + timeout * 1000,
      onDeadline: () =>
        new CommandError(`lease ${id} has no nodes within ${timeout} s; it still waits`, {
          exitCode: ExitCode.timeout,
        }),
    });
    let said = '';
    try {
      return await this.client.ready(id, {
        signal: limited.signal,
        onChange: ({ phase, reasons }) => {
          const text = printable(`lease ${id}: ${[phase, ...reasons].join('; ')}`);
          if (text !== said) this.out.note(text);
          said = text;
        },
      });
    } catch (error) {
      limited.signal.throwIfAborted();
      throw error;
    } finally {
      limited.unlink();
    }
  }

  private print(found: LeaseDocument): void {
    const { format } = this.options;
    if (format === 'json') this.out.print(JSON.stringify(found, undefined, 2));
    else if (format === 'name') this.out.print(found.id);
    else {
      printList(this.out, createRecordList(LEASE_COLUMNS, 'all', [found]), 'pretty');
      if (found.nodes.length > 0) printList(this.out, createRecordList(NODE_COLUMNS, 'all', found.nodes), 'pretty');
      for (const reason of found.reasons) this.out.note(printable(reason));
    }
  }
}

const LEASE_COLUMNS: readonly ListColumn<LeaseDocument>[] = [
  { field: 'id', header: 'ID', value: ({ id }) => id },
  { field: 'name', header: 'Name', value: ({ name }) => name },
  { field: 'state', header: 'State', value: ({ state }) => state },
  { field: 'phase', header: 'Phase', value: ({ phase, end }) => (end === null ? phase : `${phase}: ${end.reason}`) },
  { field: 'labels', header: 'Labels', value: ({ labels }) => [...labels] },
  { field: 'created_by', header: 'Created By', value: (lease) => lease.created_by },
  { field: 'expires', header: 'Expires', value: ({ expires }) => expires },
];

const NODE_COLUMNS: readonly ListColumn<NodeDocument>[] = [
  { field: 'id', header: 'Node', value: ({ id }) => id },
  { field: 'label', header: 'Label', value: ({ label }) => label },
  { field: 'state', header: 'State', value: ({ state }) => state },
  { field: 'address', header: 'Address', value: ({ address }) => address },
  { field: 'port', header: 'Port', value: (node) => node.connection_port },
  { field: 'username', header: 'Username', value: ({ username }) => username },
];

function parseData(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch (error) {
    throw new UsageError(`--data is not JSON: ${reasonOf(error)}`);
  }
}

function nodeText({ id, state }: NodeDocument): string {
  return `${id} (${state})`;
}

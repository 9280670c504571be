/** Launches instances: nodes with equal parameters that arrive together share one call. */

import {
  AbortedError,
  CapacityError,
  isDriverError,
  linkSignals,
  sleep,
  toDriverError,
  withOutcome,
  type Call,
  type Clock,
} from '@nodepool/core';
import type { Instance, RunInstancesCommandInput } from '@aws-sdk/client-ec2';
import { toTags, type Ec2 } from './client/ec2.js';
import { launchMax, launchTags, type LaunchedNode, type Tags } from './identity.js';
import { tokenOf, type LaunchSpec } from './launch-spec.js';

/** Time for which the first node of a launch waits for others (ms). */
const JOIN_WINDOW_MS = 50;

/** Parameters that the nodes of a launch have in common. */
export interface SharedLaunch {
  readonly spec: LaunchSpec;
  /** Tags of the operator. */
  readonly tags: Tags;
  readonly label: string;
}

interface Member {
  readonly node: LaunchedNode;
  readonly signal: AbortSignal;
  readonly resolve: (instance: Instance) => void;
  readonly reject: (error: unknown) => void;
}

/** Nodes that wait for the turn of their call. */
interface OpenLaunch {
  readonly key: string;
  readonly shared: SharedLaunch;
  readonly members: Member[];
  /** Aborts the call when no node needs it any more. */
  readonly controller: AbortController;
}

export class Launches {
  private readonly open = new Map<string, OpenLaunch>();

  constructor(
    private readonly ec2: Ec2,
    private readonly clock: Clock,
    private readonly makeCall: () => Call,
  ) {}

  /**
   * Resolves with the instance of a node. Rejects with `CapacityError` if EC2 launched fewer instances than requested
   * and this node got none. A node whose signal aborts before the call is sent is left out.
   */
  join(shared: SharedLaunch, node: LaunchedNode, { signal }: Call): Promise<Instance> {
    const key = JSON.stringify([shared.spec, shared.tags, shared.label, ownerOf(node)]);
    let launch = this.open.get(key);
    if (launch === undefined) {
      launch = { key, shared, members: [], controller: new AbortController() };
      this.open.set(key, launch);
      void this.run(launch);
    }
    const { members, controller } = launch;
    const joined = launch;
    signal.addEventListener(
      'abort',
      () => {
        if (!members.every((member) => member.signal.aborted)) return;
        this.close(joined);
        controller.abort(new AbortedError('no node of the launch needs an instance any more'));
      },
      { once: true },
    );
    const instance = new Promise<Instance>((resolve, reject) => members.push({ node, signal, resolve, reject }));
    if (members.length >= launchMax(shared.tags)) this.close(launch);
    return instance;
  }

  private async run(launch: OpenLaunch): Promise<void> {
    const own = this.makeCall();
    const link = linkSignals(own.signal, launch.controller.signal);
    const call = { ...own, signal: link.signal };
    let sent: readonly Member[] | undefined;
    let input: RunInstancesCommandInput | undefined;
    try {
      await sleep(this.clock, JOIN_WINDOW_MS, call.signal);
      const instances = await this.ec2.runInstances(
        () => (input ??= inputOf(launch.shared, (sent ??= this.admit(launch)), this.clock.now())),
        call,
      );
      this.distribute(sent ?? [], instances);
    } catch (error) {
      this.close(launch);
      for (const { reject } of sent ?? launch.members) reject(errorOfMember(error, sent !== undefined));
    } finally {
      link.unlink();
    }
  }

  /** Ends the admission of nodes, and returns those that still want an instance. */
  private admit(launch: OpenLaunch): readonly Member[] {
    this.close(launch);
    const members = launch.members.filter(({ signal }) => !signal.aborted);
    if (members.length > 0) return members;
    throw new AbortedError('no node of the launch needs an instance any more', { outcome: 'not-applied' });
  }

  private close(launch: OpenLaunch): void {
    if (this.open.get(launch.key) === launch) this.open.delete(launch.key);
  }

  private distribute(members: readonly Member[], instances: readonly Instance[]): void {
    const byIndex = new Map(instances.map((instance) => [instance.AmiLaunchIndex ?? 0, instance]));
    for (const [index, { resolve, reject }] of members.entries()) {
      const instance = byIndex.get(index);
      if (instance !== undefined) resolve(instance);
      else reject(new CapacityError(`EC2 launched ${instances.length} of ${members.length} instances`));
    }
  }
}

function inputOf(
  { spec, tags: own, label }: SharedLaunch,
  members: readonly Member[],
  now: number,
): RunInstancesCommandInput {
  const nodes = members.map(({ node }) => node);
  const token = nodes[0] === undefined ? '' : tokenOf(nodes[0].tags);
  const Tags = toTags(launchTags(nodes, { own, label, token, now }));
  const types = ['instance', 'volume', 'network-interface'] as const;
  return {
    ...spec,
    MinCount: 1,
    MaxCount: members.length,
    ClientToken: token,
    TagSpecifications: types.map((ResourceType) => ({ ResourceType, Tags })),
  };
}

function ownerOf({ tags }: LaunchedNode): readonly string[] {
  return [tags.nodepool_provider_name, tags.nodepool_pool_name, tags.nodepool_installation];
}

/** A call that was not sent had no effect. */
function errorOfMember(error: unknown, isSent: boolean): unknown {
  return isSent || isDriverError(error) ? error : withOutcome(toDriverError(error), 'not-applied');
}

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
import { launchMax, launchTags, nodeTags, type LaunchedNode, type Tags } from './identity.js';
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
    try {
      await sleep(this.clock, JOIN_WINDOW_MS, call.signal);
      await this.send(launch, undefined, call);
    } catch (error) {
      this.close(launch);
      rejectAll(launch.members, errorOfMember(error, false));
    } finally {
      link.unlink();
    }
  }

  /**
   * Launches some of the nodes, by default all. AWS can refuse a call because of its number of instances, so halves are
   * sent until one is accepted. Resolves with false if the quota allows no further instance.
   */
  private async send(launch: OpenLaunch, some: readonly Member[] | undefined, call: Call): Promise<boolean> {
    let sent = some;
    let input: RunInstancesCommandInput | undefined;
    try {
      const instances = await this.ec2.runInstances(() => {
        sent ??= this.admit(launch);
        // A repetition after new credentials has the same token, so it has to be the same call.
        input ??= inputOf(launch.shared, sent, { isPart: some !== undefined, now: this.clock.now() });
        return input;
      }, call);
      await this.distribute(sent ?? [], instances, call);
      return true;
    } catch (error) {
      const isOverQuota = isDriverError(error) && error.code === 'quota' && error.outcome === 'not-applied';
      if (sent === undefined || sent.length < 2 || !isOverQuota) {
        this.close(launch);
        rejectAll(sent ?? launch.members, errorOfMember(error, sent !== undefined));
        return !isOverQuota;
      }
      const middle = Math.ceil(sent.length / 2);
      const hasRoom = await this.send(launch, sent.slice(0, middle), call);
      if (hasRoom) return this.send(launch, sent.slice(middle), call);
      rejectAll(sent.slice(middle), error);
      return false;
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

  private async distribute(members: readonly Member[], instances: readonly Instance[], call: Call): Promise<void> {
    const byIndex = new Map(instances.map((instance) => [instance.AmiLaunchIndex ?? 0, instance]));
    const hasIndexes = byIndex.size === instances.length;
    for (const [index, member] of members.entries()) {
      const instance = hasIndexes ? byIndex.get(index) : instances[index];
      if (instance === undefined) {
        member.reject(new CapacityError(`EC2 launched ${instances.length} of ${members.length} instances`));
      } else if (hasIndexes) member.resolve(instance);
      else await this.tag(member, instance, call);
    }
  }

  /** Gives an instance the tags of its node, because no launch index tells it from others of its call. */
  private async tag({ node, resolve, reject }: Member, instance: Instance, call: Call): Promise<void> {
    try {
      await this.ec2.createTags([instance.InstanceId ?? ''], nodeTags(node), call);
      resolve(instance);
    } catch (error) {
      reject(withOutcome(toDriverError(error), 'unknown'));
    }
  }
}

/** A part of a refused call has a token of its own: EC2 refuses the token of that call with other parameters. */
function inputOf(
  { spec, tags: own, label }: SharedLaunch,
  members: readonly Member[],
  { isPart, now }: { readonly isPart: boolean; readonly now: number },
): RunInstancesCommandInput {
  const nodes = members.map(({ node }) => node);
  const first = nodes[0] === undefined ? '' : tokenOf(nodes[0].tags);
  const token = isPart ? `${first}-${members.length}` : first;
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

function rejectAll(members: readonly Member[], error: unknown): void {
  for (const { reject } of members) reject(error);
}

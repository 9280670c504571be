/** Launches single instances with fleets, for which EC2 chooses type and subnet, and keeps their launch templates. */

import { createHash } from 'node:crypto';
import { CapacityError, InstanceFailedError, type Call, type Clock, type DriverError } from '@nodepool/core';
import type {
  CreateFleetCommandInput,
  CreateFleetCommandOutput,
  Image,
  RequestLaunchTemplateData,
} from '@aws-sdk/client-ec2';
import { asInstanceType, tagsIn, toTags, type Ec2 } from './client/ec2.js';
import type { AllocationStrategy, AwsLabel } from './config.js';
import { codeIn, errorOfCode } from './errors.js';
import { FLEET_TAG, LAUNCHED_AT_TAG, nodeTags, type LaunchedNode, type Tags } from './identity.js';
import { blockDevices, interfaceOf, metadataOf, tokenOf } from './launch-spec.js';

const TEMPLATE_PREFIX = 'nodepool-launch-template-';
/** Time after its last use by this process, and after its creation, until a template is deleted (ms). */
const TEMPLATE_UNUSED_MS = 86_400_000;

export interface FleetLaunch {
  readonly label: AwsLabel;
  readonly image: Image;
  /** Empty for the default subnet. */
  readonly subnetIds: readonly string[];
  /** Tags of the operator. */
  readonly tags: Tags;
  readonly node: LaunchedNode;
}

export class Fleets {
  /** Time (monotonic, ms) of the last use by name. */
  private readonly templates = new Map<string, number>();

  constructor(
    private readonly ec2: Ec2,
    private readonly clock: Clock,
    /** Returns a call that several launches share. */
    private readonly makeCall: () => Call,
  ) {}

  /** Resolves with the id of the instance. Errors inside the answer count like those of the call. */
  async launch(launch: FleetLaunch, call: Call): Promise<string> {
    const answer = await this.create(launch, await this.template(launch), call);
    const id = answer.Instances?.flatMap(({ InstanceIds = [] }) => InstanceIds)[0];
    if (id === undefined) throw failureOf(launch.label.name, answer);
    return id;
  }

  /** Creates a template that another program has deleted once more. */
  private async create(launch: FleetLaunch, template: string, call: Call): Promise<CreateFleetCommandOutput> {
    const input = fleetInput(launch, template, this.clock.now());
    try {
      return await this.ec2.createFleet(input, call);
    } catch (error) {
      if (!/^InvalidLaunchTemplate.*NotFound/.test(codeIn(error) ?? '')) throw error;
      this.templates.delete(template);
      await this.template(launch);
      return this.ec2.createFleet(input, call);
    }
  }

  /** Deletes the templates of this provider and installation that have not been used for a day. */
  async deleteUnused(provider: string, installation: string, call: Call): Promise<void> {
    for (const { LaunchTemplateId, LaunchTemplateName = '', CreateTime, Tags } of await this.ec2.templates(call)) {
      const tags = tagsIn(Tags);
      const isOurs =
        tags['nodepool_provider_name'] === provider &&
        tags['nodepool_installation'] === installation &&
        tags[TEMPLATE_TAG] === LaunchTemplateName;
      if (!isOurs || LaunchTemplateId === undefined || CreateTime === undefined) continue;
      const usedAt = this.templates.get(LaunchTemplateName);
      const idleMs = usedAt === undefined ? Infinity : this.clock.monotonic() - usedAt;
      const unusedMs = Math.min(this.clock.now() - CreateTime.getTime(), idleMs);
      if (unusedMs < TEMPLATE_UNUSED_MS) continue;
      call.log.info('Deleting in the cloud', {
        kind: 'launch template',
        external_id: LaunchTemplateId,
        name: LaunchTemplateName,
        because: 'no node has been launched with it for a day',
      });
      this.templates.delete(LaunchTemplateName);
      try {
        await this.ec2.deleteTemplate(LaunchTemplateId, call);
      } catch (error) {
        if (!/NotFound/.test(codeIn(error) ?? '')) throw error;
      }
    }
  }

  /** Creates the template of a label if it is missing. Its name contains a hash of its content. */
  private async template({ label, image, subnetIds, node }: FleetLaunch): Promise<string> {
    const { nodepool_provider_name, nodepool_installation } = node.tags;
    const owner = { nodepool_provider_name, nodepool_installation };
    const data = templateData(label, image, subnetIds, owner);
    const hash = createHash('sha256')
      .update(JSON.stringify([owner, data]))
      .digest('hex');
    const name = `${TEMPLATE_PREFIX}${hash}`;
    if (!this.templates.has(name)) {
      const Tags = toTags({ ...owner, [TEMPLATE_TAG]: name });
      const input = {
        LaunchTemplateName: name,
        LaunchTemplateData: data,
        TagSpecifications: [{ ResourceType: 'launch-template' as const, Tags }],
      };
      try {
        await this.ec2.createTemplate(input, this.makeCall());
      } catch (error) {
        if (!/AlreadyExists/.test(codeIn(error) ?? '')) throw error;
      }
    }
    this.templates.set(name, this.clock.monotonic());
    return name;
  }
}

/** Tag with the name of the template, which copies cannot share. */
const TEMPLATE_TAG = 'nodepool_template';

function templateData(
  label: AwsLabel,
  image: Image,
  subnetIds: readonly string[],
  owner: Tags,
): RequestLaunchTemplateData {
  // The subnet of each override replaces that of the interface.
  return {
    KeyName: label.keyName,
    EbsOptimized: label.ebsOptimized,
    NetworkInterfaces: [interfaceOf(label, subnetIds.length === 1 ? subnetIds[0] : undefined)],
    BlockDeviceMappings: blockDevices(label, image),
    ...(label.userData === undefined ? {} : { UserData: label.userData }),
    ...(label.instanceProfile === undefined ? {} : { IamInstanceProfile: label.instanceProfile }),
    ...metadataOf(label),
    TagSpecifications: [{ ResourceType: 'network-interface', Tags: toTags({ ...label.tags, ...owner }) }],
  };
}

/** Strategies of spot fleets by those of the configuration, which uses the name of on-demand fleets for one. */
function spotStrategy(
  strategy: AllocationStrategy,
): Exclude<AllocationStrategy, 'prioritized'> | 'capacity-optimized-prioritized' {
  return strategy === 'prioritized' ? 'capacity-optimized-prioritized' : strategy;
}

function fleetInput(
  { label, image, subnetIds, tags, node }: FleetLaunch,
  template: string,
  now: number,
): CreateFleetCommandInput {
  const strategy = label.fleet?.strategy ?? 'lowest-price';
  const isSpot = label.market === 'spot';
  const places = subnetIds.length === 0 ? [{ zone: label.network.zone }] : subnetIds.map((id) => ({ subnetId: id }));
  const Overrides = label.instanceTypes.flatMap((type, priority) =>
    places.map((place) => ({
      ImageId: image.ImageId,
      InstanceType: asInstanceType(type),
      ...(strategy === 'prioritized' ? { Priority: priority } : {}),
      ...('subnetId' in place ? { SubnetId: place.subnetId } : {}),
      ...('zone' in place && place.zone !== undefined ? { AvailabilityZone: place.zone } : {}),
    })),
  );
  const own = toTags({
    ...tags,
    ...nodeTags(node),
    [FLEET_TAG]: template,
    [LAUNCHED_AT_TAG]: new Date(now).toISOString(),
  });
  return {
    Type: 'instant',
    ClientToken: tokenOf(node.tags),
    LaunchTemplateConfigs: [
      { LaunchTemplateSpecification: { LaunchTemplateName: template, Version: '$Latest' }, Overrides },
    ],
    TargetCapacitySpecification: {
      TotalTargetCapacity: 1,
      DefaultTargetCapacityType: isSpot ? 'spot' : 'on-demand',
    },
    ...(isSpot
      ? { SpotOptions: { AllocationStrategy: spotStrategy(strategy), InstanceInterruptionBehavior: 'terminate' } }
      : { OnDemandOptions: { AllocationStrategy: strategy === 'prioritized' ? strategy : 'lowest-price' } }),
    // Fleets tag no interfaces; those of the template have the tags of its owner.
    TagSpecifications: (['instance', 'volume'] as const).map((ResourceType) => ({ ResourceType, Tags: own })),
  };
}

/** Errors of a fleet, the one that decides first. */
const PRECEDENCE: readonly string[] = ['throttled', 'capacity', 'quota', 'transient'];

/** Returns the error of a fleet without an instance. One type or zone with capacity would have been enough. */
function failureOf(label: string, { Errors = [] }: CreateFleetCommandOutput): DriverError {
  const failures = Errors.map(({ ErrorCode = '', ErrorMessage = '' }) =>
    errorOfCode('ec2 CreateFleet', ErrorCode, ErrorMessage),
  );
  for (const code of PRECEDENCE) {
    const found = failures.find((failure) => failure.code === code);
    if (found !== undefined) return found;
  }
  const [first] = failures;
  if (first !== undefined) return first;
  const message = `the fleet of label ${label} has no instance, and AWS gives no reason`;
  return Errors.length === 0 ? new CapacityError(message) : new InstanceFailedError(message);
}

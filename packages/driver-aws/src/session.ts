/** Objects that all state machines of a provider share. */

import type { Call, Clock, ImageManager, RandomSource } from '@nodepool/core';
import type { Connection } from './client/connection.js';
import { ImageCalls } from './client/image-calls.js';
import { Ec2 } from './client/ec2.js';
import type { AwsProvider } from './config.js';
import { Fleets } from './fleets.js';
import { InstanceTypes } from './instance-types.js';
import { Interruptions } from './interruptions.js';
import { Launches } from './launches.js';
import { Lookups } from './lookups.js';
import { InstanceNames } from './names.js';
import { Terminations } from './terminations.js';

export class ProviderSession {
  readonly ec2: Ec2;
  readonly types: InstanceTypes;
  readonly lookups: Lookups;
  readonly launches: Launches;
  readonly fleets: Fleets;
  readonly names: InstanceNames;
  readonly terminations: Terminations;
  readonly interruptions: Interruptions;
  readonly imageCalls: ImageCalls;
  /** True if a label of the provider has dedicated hosts, which are listed with the instances. */
  readonly usesHosts: boolean;

  constructor(
    readonly config: AwsProvider,
    readonly connection: Connection,
    readonly clock: Clock,
    readonly random: RandomSource,
    /** Returns a call that several machines share. */
    readonly makeCall: () => Call,
    readonly images: Pick<ImageManager, 'deleteImage'>,
  ) {
    this.ec2 = new Ec2(connection);
    this.types = new InstanceTypes(this.ec2, () => clock.monotonic(), makeCall);
    this.lookups = new Lookups(this.ec2, makeCall, clock);
    this.launches = new Launches(this.ec2, clock, makeCall);
    this.fleets = new Fleets(this.ec2, clock, makeCall);
    this.names = new InstanceNames(this.ec2, clock, makeCall);
    this.terminations = new Terminations(this.ec2, clock, makeCall);
    this.interruptions = new Interruptions(connection, config.interruptionQueue, clock);
    this.imageCalls = new ImageCalls(connection);
    this.usesHosts = [...config.pools.values()].some(({ labels }) =>
      [...labels.values()].some(({ dedicatedHost }) => dedicatedHost),
    );
  }
}

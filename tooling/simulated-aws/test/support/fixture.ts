/** A simulated AWS on a virtual clock, with Amazon's clients for it. */

import { seededRandom, VirtualClock } from '@nodepool/core/testing';
import { EBSClient } from '@aws-sdk/client-ebs';
import {
  DescribeInstancesCommand,
  EC2Client,
  RunInstancesCommand,
  type Instance,
  type RunInstancesCommandInput,
} from '@aws-sdk/client-ec2';
import { S3Client } from '@aws-sdk/client-s3';
import { ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import { SQSClient } from '@aws-sdk/client-sqs';
import { STSClient } from '@aws-sdk/client-sts';
import {
  REGION,
  startSimulatedAws,
  type AwsCredentials,
  type AwsSettings,
  type SimulatedAws,
} from '../../src/index.js';

/** Settings of a client of any service. */
export interface ClientConfig {
  readonly region: string;
  readonly endpoint: string;
  readonly credentials: AwsCredentials;
  readonly maxAttempts: 1;
}

export class Fixture {
  readonly ec2: EC2Client;
  readonly s3: S3Client;
  readonly ebs: EBSClient;
  readonly quotas: ServiceQuotasClient;
  readonly sqs: SQSClient;
  readonly sts: STSClient;

  private constructor(
    readonly clock: VirtualClock,
    readonly cloud: SimulatedAws,
  ) {
    const config = this.config();
    this.ec2 = new EC2Client(config);
    this.s3 = new S3Client(config);
    this.ebs = new EBSClient(config);
    this.quotas = new ServiceQuotasClient(config);
    this.sqs = new SQSClient(config);
    this.sts = new STSClient(config);
  }

  static async start(settings: Partial<AwsSettings> = {}): Promise<Fixture> {
    const clock = new VirtualClock();
    return new Fixture(clock, await startSimulatedAws({ clock, random: seededRandom(1), settings }));
  }

  config(region = REGION, credentials = this.cloud.credentials): ClientConfig {
    return { region, endpoint: this.cloud.url, credentials, maxAttempts: 1 };
  }

  async close(): Promise<void> {
    for (const client of [this.ec2, this.s3, this.ebs, this.quotas, this.sqs, this.sts]) client.destroy();
    await this.cloud.close();
  }

  /** Launches instances, and returns their descriptions. */
  async run(changes: Partial<RunInstancesCommandInput> = {}): Promise<readonly Instance[]> {
    const { publicImageId: ImageId } = this.cloud;
    const input = { ImageId, InstanceType: 'm5.large', MinCount: 1, MaxCount: 1, ...changes } as const;
    const { Instances: instances = [] } = await this.ec2.send(new RunInstancesCommand(input));
    return instances;
  }

  /** Launches one instance, and returns its id. */
  async runOne(changes: Partial<RunInstancesCommandInput> = {}): Promise<string> {
    const [instance] = await this.run(changes);
    return instance?.InstanceId ?? '';
  }

  /** Returns all listed instances. */
  async list(): Promise<readonly Instance[]> {
    const { Reservations: reservations = [] } = await this.ec2.send(new DescribeInstancesCommand({}));
    return reservations.flatMap(({ Instances: instances = [] }) => instances);
  }
}

/** Returns the code of the error of a call; `accepted` if there is none. */
export async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return 'accepted';
  } catch (error) {
    return error instanceof Error ? error.name : String(error);
  }
}

export async function messageOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return 'accepted';
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

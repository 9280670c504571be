/** Amazon's clients with one set of credentials. They neither repeat calls nor limit their rate. */

import type { AwsCredentialIdentity } from './credentials.js';
import type { EBSClient } from '@aws-sdk/client-ebs';
import type { EC2Client } from '@aws-sdk/client-ec2';
import type { S3Client } from '@aws-sdk/client-s3';
import type { ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import type { SQSClient } from '@aws-sdk/client-sqs';
import { loadEbs, loadEc2, loadQuotas, loadS3, loadSqs } from './libraries.js';

interface ClientOptions {
  readonly region: string;
  readonly endpoint?: string;
  readonly credentials: AwsCredentialIdentity;
  readonly maxAttempts: number;
}

export class Sdk {
  private readonly ec2ByRegion = new Map<string, EC2Client>();
  private s3Client: S3Client | undefined;
  private ebsClient: EBSClient | undefined;
  private quotasClient: ServiceQuotasClient | undefined;
  private sqsClient: SQSClient | undefined;

  constructor(
    readonly identity: AwsCredentialIdentity,
    private readonly region: string,
    private readonly endpoint: string | undefined,
  ) {}

  ec2(region = this.region): EC2Client {
    const known = this.ec2ByRegion.get(region);
    if (known !== undefined) return known;
    const client = new (loadEc2().EC2Client)(this.options(region));
    this.ec2ByRegion.set(region, client);
    return client;
  }

  get s3(): S3Client {
    const forcePathStyle = this.endpoint !== undefined;
    this.s3Client ??= new (loadS3().S3Client)({ ...this.options(), forcePathStyle });
    return this.s3Client;
  }

  get ebs(): EBSClient {
    this.ebsClient ??= new (loadEbs().EBSClient)(this.options());
    return this.ebsClient;
  }

  get quotas(): ServiceQuotasClient {
    this.quotasClient ??= new (loadQuotas().ServiceQuotasClient)(this.options());
    return this.quotasClient;
  }

  get sqs(): SQSClient {
    this.sqsClient ??= new (loadSqs().SQSClient)(this.options());
    return this.sqsClient;
  }

  destroy(): void {
    for (const client of this.ec2ByRegion.values()) client.destroy();
    for (const client of [this.s3Client, this.ebsClient, this.quotasClient, this.sqsClient]) client?.destroy();
  }

  private options(region = this.region): ClientOptions {
    const { identity, endpoint } = this;
    return { region, credentials: identity, maxAttempts: 1, ...(endpoint === undefined ? {} : { endpoint }) };
  }
}

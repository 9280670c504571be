/** Amazon's clients with one set of credentials. They neither repeat calls nor limit their rate. */

import { pipeline, Readable, Transform } from 'node:stream';
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
    guard(client);
    this.ec2ByRegion.set(region, client);
    return client;
  }

  get s3(): S3Client {
    const forcePathStyle = this.endpoint !== undefined;
    if (this.s3Client === undefined) {
      this.s3Client = new (loadS3().S3Client)({ ...this.options(), forcePathStyle });
      guard(this.s3Client);
    }
    return this.s3Client;
  }

  get ebs(): EBSClient {
    if (this.ebsClient === undefined) {
      this.ebsClient = new (loadEbs().EBSClient)(this.options());
      guard(this.ebsClient);
    }
    return this.ebsClient;
  }

  get quotas(): ServiceQuotasClient {
    if (this.quotasClient === undefined) {
      this.quotasClient = new (loadQuotas().ServiceQuotasClient)(this.options());
      guard(this.quotasClient);
    }
    return this.quotasClient;
  }

  get sqs(): SQSClient {
    if (this.sqsClient === undefined) {
      this.sqsClient = new (loadSqs().SQSClient)(this.options());
      guard(this.sqsClient);
    }
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

interface StepArguments {
  readonly request?: unknown;
}

interface StepResult {
  readonly response?: unknown;
}

/** The steps of the clients, as far as this file uses them. */
interface Steps {
  add(
    step: (next: (args: StepArguments) => Promise<StepResult>) => (args: StepArguments) => Promise<StepResult>,
    options: {
      readonly step: 'finalizeRequest' | 'deserialize';
      readonly name: string;
      readonly priority?: 'low';
    },
  ): void;
}

/** Maximum length of an answer in bytes. A page of a list has a few MiB. */
const MAX_ANSWER = 32 * 1024 * 1024;

/**
 * Adds the host of a request to its errors, since the library's errors do not name it, and ends answers that are too
 * long, which the library would read into memory.
 */
function guard({ middlewareStack }: { readonly middlewareStack: unknown }): void {
  const steps = middlewareStack as Steps;
  steps.add(
    (next) => async (args) => {
      try {
        return await next(args);
      } catch (error) {
        if (error instanceof Error) Object.assign(error, { $host: hostOf(args.request) });
        throw error;
      }
    },
    { step: 'finalizeRequest', name: 'nodepoolHost' },
  );
  steps.add(
    (next) => async (args) => {
      const result = await next(args);
      const { response } = result;
      if (typeof response === 'object' && response !== null && 'body' in response && response.body instanceof Readable)
        response.body = bounded(response.body);
      return result;
    },
    { step: 'deserialize', name: 'nodepoolLimit', priority: 'low' },
  );
}

function bounded(body: Readable): Readable {
  let length = 0;
  const limit = new Transform({
    transform(chunk: Buffer, _encoding, done): void {
      length += chunk.length;
      if (length > MAX_ANSWER) done(new Error(`the answer is longer than ${MAX_ANSWER} bytes`));
      else done(null, chunk);
    },
  });
  return pipeline(body, limit, () => undefined);
}

function hostOf(request: unknown): string | undefined {
  if (typeof request !== 'object' || request === null || !('hostname' in request)) return undefined;
  const { hostname, port } = request as { readonly hostname: string; readonly port?: number };
  return port === undefined ? hostname : `${hostname}:${port}`;
}

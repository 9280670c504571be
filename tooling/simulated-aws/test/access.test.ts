/** Signatures, credentials, rights, inputs and faults. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { EBSClient, StartSnapshotCommand } from '@aws-sdk/client-ebs';
import {
  CreateLaunchTemplateCommand,
  DescribeInstancesCommand,
  DescribeRegionsCommand,
  EC2Client,
  RunInstancesCommand,
} from '@aws-sdk/client-ec2';
import { ListBucketsCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { ListServiceQuotasCommand, ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import { ListQueuesCommand, ReceiveMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { AssumeRoleWithWebIdentityCommand, GetCallerIdentityCommand, STSClient } from '@aws-sdk/client-sts';
import { ACCOUNT, BUCKET, INSTANCE_PROFILE, ROLE_ARN, type AwsCredentials, type AwsFault } from '../src/index.js';
import { codeOf, Fixture, messageOf } from './support/fixture.js';

let aws: Fixture;

beforeEach(async () => {
  aws = await Fixture.start();
});

afterEach(() => aws.close());

/** Returns the codes of a harmless call to each service. */
async function codesWith(credentials: AwsCredentials, region?: string): Promise<Readonly<Record<string, string>>> {
  const config = aws.config(region, credentials);
  return {
    ec2: await codeOf(new EC2Client(config).send(new DescribeRegionsCommand({}))),
    s3: await codeOf(new S3Client(config).send(new ListBucketsCommand({}))),
    ebs: await codeOf(new EBSClient(config).send(new StartSnapshotCommand({ VolumeSize: 1 }))),
    quotas: await codeOf(new ServiceQuotasClient(config).send(new ListServiceQuotasCommand({ ServiceCode: 'ebs' }))),
    sqs: await codeOf(new SQSClient(config).send(new ListQueuesCommand({}))),
    sts: await codeOf(new STSClient(config).send(new GetCallerIdentityCommand({}))),
  };
}

const ACCEPTED = {
  ec2: 'accepted',
  s3: 'accepted',
  ebs: 'accepted',
  quotas: 'accepted',
  sqs: 'accepted',
  sts: 'accepted',
};

describe('credentials', () => {
  it('are verified by every service, each with its own code', async () => {
    expect(await codesWith(aws.cloud.credentials)).toEqual(ACCEPTED);
    expect(await codesWith({ ...aws.cloud.credentials, secretAccessKey: 'wrong' })).toEqual({
      ...{ ec2: 'AuthFailure', s3: 'SignatureDoesNotMatch', ebs: 'InvalidSignatureException' },
      ...{ quotas: 'InvalidSignatureException', sqs: 'InvalidSignatureException', sts: 'SignatureDoesNotMatch' },
    });
    expect(await codesWith({ accessKeyId: 'AKIAOTHER', secretAccessKey: 'x' })).toEqual({
      ...{ ec2: 'AuthFailure', s3: 'InvalidAccessKeyId', ebs: 'UnrecognizedClientException' },
      ...{ quotas: 'UnrecognizedClientException', sqs: 'InvalidClientTokenId', sts: 'InvalidClientTokenId' },
    });
    expect((await codesWith(aws.cloud.credentials, 'mars-1')).ec2).toBe('AuthFailure');
  });

  it('are for one service', async () => {
    const signed = new STSClient(aws.config());
    signed.middlewareStack.add(
      (next) => (args) => {
        const { request: http } = args as { request: { body: string } };
        http.body = http.body.replace('GetCallerIdentity', 'DescribeInstances');
        return next(args);
      },
      { step: 'build', name: 'action' },
    );
    expect(await codeOf(signed.send(new GetCallerIdentityCommand({})))).toBe('InvalidAction');
    signed.destroy();
    const scope = `${aws.cloud.credentials.accessKeyId}/20260101/us-east-1/iam/aws4_request`;
    const signature = '0'.repeat(64);
    const Authorization = `AWS4-HMAC-SHA256 Credential=${scope}, SignedHeaders=host, Signature=${signature}`;
    const url = `${aws.cloud.url}/?Action=DescribeInstances&Version=2016-11-15`;
    const answer = await fetch(url, { headers: { Authorization } });
    expect(await answer.text()).toContain("Credential should be scoped to correct service: 'ec2'.");
  });

  it('may be temporary, and expire', async () => {
    const credentials = aws.cloud.issueCredentials(1000);
    expect(await codesWith(credentials)).toEqual(ACCEPTED);
    const { accessKeyId, secretAccessKey } = credentials;
    expect((await codesWith({ accessKeyId, secretAccessKey })).ec2).toBe('AuthFailure');
    await aws.clock.advance(1000);
    expect(await codesWith(credentials)).toEqual({
      ...{ ec2: 'RequestExpired', s3: 'ExpiredToken', ebs: 'ExpiredTokenException' },
      ...{ quotas: 'ExpiredTokenException', sqs: 'ExpiredToken', sts: 'ExpiredToken' },
    });
  });

  it('are revoked and restored', async () => {
    aws.cloud.revokeCredentials(true);
    expect((await codesWith(aws.cloud.credentials)).ec2).toBe('AuthFailure');
    aws.cloud.revokeCredentials(false);
    expect((await codesWith(aws.cloud.credentials)).ec2).toBe('accepted');
  });

  it('of a role come from a web identity, without a signature', async () => {
    const assume = (RoleArn: string, WebIdentityToken: string): AssumeRoleWithWebIdentityCommand =>
      new AssumeRoleWithWebIdentityCommand({ RoleArn, WebIdentityToken, RoleSessionName: 'launcher' });
    const { Credentials: issued } = await aws.sts.send(assume(ROLE_ARN, aws.cloud.webIdentityToken()));
    const sts = new STSClient({
      ...aws.config(),
      credentials: {
        accessKeyId: issued?.AccessKeyId ?? '',
        secretAccessKey: issued?.SecretAccessKey ?? '',
        sessionToken: issued?.SessionToken ?? '',
      },
    });
    const arn = `arn:aws:sts::${ACCOUNT}:assumed-role/nodepool/launcher`;
    expect((await sts.send(new GetCallerIdentityCommand({}))).Arn).toBe(arn);
    aws.cloud.expireCredentials();
    expect(await codeOf(sts.send(new GetCallerIdentityCommand({})))).toBe('ExpiredToken');
    expect(await codeOf(aws.sts.send(assume(ROLE_ARN, 'a.b.c')))).toBe('InvalidIdentityTokenException');
    const other = assume(`${ROLE_ARN}-2`, aws.cloud.webIdentityToken());
    expect(await codeOf(aws.sts.send(other))).toBe('AccessDenied');
  });

  it('have a time if a test says so', async () => {
    // The clients sign with the time of the process, which is not that of the virtual clock.
    aws.cloud.configure({ maxSkewMs: 300_000 });
    expect(await codeOf(aws.ec2.send(new DescribeRegionsCommand({})))).toBe('RequestExpired');
  });
});

describe('rights', () => {
  it('are needed for each action, and recorded', async () => {
    const Tags = [{ Key: 'a', Value: 'b' }];
    const TagSpecifications = [{ ResourceType: 'instance' as const, Tags }];
    await aws.run({ TagSpecifications, IamInstanceProfile: { Name: INSTANCE_PROFILE } });
    await aws.s3.send(new PutObjectCommand({ Bucket: BUCKET, Key: 'a', Body: 'x', Tagging: 'a=b' }));
    expect(aws.cloud.permissions.used()).toEqual([
      ...['ec2:CreateTags', 'ec2:RunInstances', 'iam:PassRole', 's3:PutObject', 's3:PutObjectTagging'],
    ]);
    aws.cloud.permissions.resetUsed();
    expect(aws.cloud.permissions.used()).toEqual([]);
  });

  it('can be denied and granted one by one', async () => {
    const { permissions, inspect } = aws.cloud;
    const Tags = [{ Key: 'a', Value: 'b' }];
    const launch = (): Promise<string> => codeOf(aws.run({ TagSpecifications: [{ ResourceType: 'instance', Tags }] }));
    permissions.deny('ec2:CreateTags');
    expect(await launch()).toBe('UnauthorizedOperation');
    expect(inspect.instances()).toEqual([]);
    permissions.allow('ec2:CreateTags');
    permissions.allowOnly(['ec2:Describe*', 'ec2:CreateTags']);
    expect(await launch()).toBe('UnauthorizedOperation');
    expect(await codeOf(aws.list())).toBe('accepted');
    expect(await codesWith(aws.cloud.credentials)).toEqual({
      ...{ ec2: 'accepted', s3: 'AccessDenied', ebs: 'AccessDeniedException', quotas: 'AccessDeniedException' },
      ...{ sqs: 'AccessDenied', sts: 'accepted' },
    });
    permissions.allowOnly(undefined);
    expect(await launch()).toBe('accepted');
  });

  it('are checked before a dry run', async () => {
    const launch = { ImageId: aws.cloud.publicImageId, InstanceType: 'm5.large', MinCount: 1, MaxCount: 1 } as const;
    const dry = new RunInstancesCommand({ ...launch, DryRun: true });
    expect(await codeOf(aws.ec2.send(dry))).toBe('DryRunOperation');
    aws.cloud.permissions.deny('ec2:RunInstances');
    expect(await codeOf(aws.ec2.send(dry))).toBe('UnauthorizedOperation');
  });
});

describe('an input', () => {
  /** The clients cannot send these: a step of their middleware adds the parameter. */
  const withParameter = (name: string, value: string): EC2Client => {
    const client = new EC2Client(aws.config());
    client.middlewareStack.add(
      (next) => (args) => {
        const { request: http } = args as { request: { body: string; headers: Record<string, string> } };
        http.body += `&${name}=${value}`;
        http.headers['content-length'] = String(Buffer.byteLength(http.body));
        return next(args);
      },
      { step: 'build', name: 'parameter' },
    );
    return client;
  };

  it.each([
    ['Colour', 'red', 'UnknownParameter', 'The parameter Colour is not recognized'],
    ['Filter.1.Colour', 'red', 'UnknownParameter', 'The parameter Filter.1.Colour is not recognized'],
    ['MaxResults', 'many', 'InvalidParameterValue', 'Value (many) for parameter MaxResults is invalid'],
    ['DryRun', 'yes', 'InvalidParameterValue', 'Value (yes) for parameter DryRun is invalid'],
  ])('with %s=%s is refused', async (name, value, code, message) => {
    const call = withParameter(name, value).send(new DescribeInstancesCommand({}));
    expect([await codeOf(call), await messageOf(call)]).toEqual([code, message]);
  });

  it('lacks nothing that is required, and names known values only', async () => {
    const LaunchTemplateName = 'template';
    const incomplete = new CreateLaunchTemplateCommand({ LaunchTemplateName, LaunchTemplateData: undefined });
    expect(await codeOf(aws.ec2.send(incomplete))).toBe('MissingParameter');
    const HttpTokens = 'sometimes' as 'required';
    expect(await codeOf(aws.run({ MetadataOptions: { HttpTokens } }))).toBe('InvalidParameterValue');
    const QueueUrl = aws.cloud.queueUrl;
    const many = new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 11 });
    expect(await codeOf(aws.sqs.send(many))).toBe('InvalidParameterValue');
    const large = new StartSnapshotCommand({ VolumeSize: 65_537 });
    expect(await codeOf(aws.ebs.send(large))).toBe('ValidationException');
  });

  it('without a signature is refused, in the form of the service', async () => {
    const answer = await fetch(`${aws.cloud.url}/?Action=DescribeInstances&Version=2016-11-15`);
    expect(answer.status).toBe(403);
    expect(await answer.text()).toContain('<Code>MissingAuthenticationToken</Code>');
  });

  it('may name its bucket in the host name', async () => {
    const Bucket = BUCKET;
    // The signature covers the host name, which the request sends to the same address.
    const client = new S3Client({ ...aws.config(), endpoint: 'http://localhost:1', forcePathStyle: false });
    let target = { path: '', headers: {} as Record<string, string>, method: '' };
    client.middlewareStack.add(
      () => (args) => {
        target = args.request as typeof target;
        return Promise.reject(new Error('stop'));
      },
      { step: 'finalizeRequest', priority: 'low', name: 'capture' },
    );
    await codeOf(client.send(new PutObjectCommand({ Bucket, Key: 'a/b', Body: 'hello' })));
    expect(target.headers['host']).toBe(`${BUCKET}.localhost:1`);
    const status = await new Promise<number>((resolve, reject) => {
      const url = new URL(target.path, aws.cloud.url);
      const call = request(`${url.href}?x-id=PutObject`, { method: 'PUT', headers: target.headers }, (response) => {
        text(response).then(() => resolve(response.statusCode ?? 0), reject);
      });
      call.on('error', reject);
      call.end('hello');
    });
    expect(status).toBe(200);
    expect(aws.cloud.inspect.objects()).toMatchObject([{ bucket: BUCKET, key: 'a/b', size: 5 }]);
  });
});

describe('a fault', () => {
  const failing: readonly (readonly [fault: AwsFault, code: RegExp, launched: number])[] = [
    [{ kind: 'status', status: 500, code: 'InternalError' }, /^InternalError$/, 0],
    [{ kind: 'status', status: 503, code: 'Unavailable', when: 'after' }, /^Unavailable$/, 1],
    [{ kind: 'throttle' }, /^RequestLimitExceeded$/, 0],
    [{ kind: 'expired-credentials' }, /^RequestExpired$/, 0],
    [{ kind: 'cut', when: 'before' }, /^(?:Error|TimeoutError)$/, 0],
    [{ kind: 'cut', when: 'after' }, /^(?:Error|TimeoutError)$/, 1],
    [{ kind: 'cut', when: 'during' }, /^(?:Error|TimeoutError)$/, 1],
    [{ kind: 'garbage' }, /./, 1],
    [{ kind: 'proxy', status: 502 }, /./, 0],
  ];

  it.each(failing)('%j is seen by the client, before or after its effect', async (fault, code, launched) => {
    aws.cloud.faults.add({ on: 'ec2.RunInstances', fault });
    const outcome = await codeOf(aws.run({ ClientToken: 'a' }));
    expect(outcome).toMatch(code);
    expect(outcome).not.toBe('accepted');
    expect(aws.cloud.inspect.instances()).toHaveLength(launched);
    // The next call finds what the lost one created.
    await aws.run({ ClientToken: 'a' });
    expect(aws.cloud.inspect.instances()).toHaveLength(1);
  });

  it('has the words of the service', async () => {
    aws.cloud.faults.add({ on: '*', times: Infinity, fault: { kind: 'throttle' } });
    expect(await codesWith(aws.cloud.credentials)).toEqual({
      ...{ ec2: 'RequestLimitExceeded', s3: 'SlowDown', ebs: 'RequestThrottledException' },
      ...{ quotas: 'TooManyRequestsException', sqs: 'ThrottlingException', sts: 'Throttling' },
    });
    aws.cloud.faults.clear();
    const fault = { kind: 'status', status: 500, code: 'InternalServerException' } as const;
    aws.cloud.faults.add({ on: 'ebs', fault });
    expect((await codesWith(aws.cloud.credentials)).ebs).toBe('InternalServerException');
    expect(aws.cloud.calls.count('ebs.StartSnapshot')).toBe(2);
    expect(aws.cloud.calls.count('ebs')).toBe(2);
  });
});

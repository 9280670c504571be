/** Amazon's clients in Python, from Debian, use the simulated cloud for the lives of instances and images. */

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { BUCKET, REGION, startSimulatedAws, type SimulatedAws } from '../src/index.js';

const PYTHON = '/usr/bin/python3';
const AWS = '/usr/bin/aws';
const hasBoto3 = spawnSync(PYTHON, ['-c', 'import boto3']).status === 0;
const hasAwscli = spawnSync(AWS, ['--version']).status === 0;
const missing = (name: string): string => `${name} (skipped: the Debian package is not installed)`;
const run = promisify(execFile);

(hasBoto3 ? describe : describe.skip)(hasBoto3 ? 'boto3' : missing('python3-boto3'), () => {
  let cloud: SimulatedAws;
  let facts: Readonly<Record<string, unknown>>;

  beforeAll(async () => {
    // The client is another process, so the operations take real time.
    cloud = await startSimulatedAws({ settings: { pendingMs: 20, shuttingDownMs: 10, importMs: 20 } });
    const { url, credentials, subnets, securityGroups, publicImageId, queueUrl } = cloud;
    const setup = { url, ...credentials, subnets, securityGroups, publicImageId, queueUrl };
    const { stdout } = await run(PYTHON, [join(__dirname, 'use-by-boto3.py'), JSON.stringify(setup)]);
    facts = JSON.parse(stdout) as typeof facts;
  });

  afterAll(() => cloud.close());

  it('signs in, and lists quotas, types and offerings in pages', () => {
    expect(facts).toMatchObject({ identity: '123456789012', wrongSecret: 'AuthFailure' });
    expect(facts['quotas']).toEqual({ pages: true, standard: [1152] });
    expect(facts['types']).toEqual([
      ...[
        ['m5.large', 2, 1],
        ['m7g.large', 2, 2],
        ['im4gn.large', 2, 2],
        ['gr6.4xlarge', 16, 8],
        ['mac2.metal', 8, 8],
      ],
      ['u7in-16tb.224xlarge', 896, 448],
    ]);
    expect(facts['offers']).toEqual(['us-east-1a', 'us-east-1b']);
  });

  it('launches instances once per client token', () => {
    const tags = [{ Key: 'Name', Value: 'ci-1' }];
    expect(facts['token']).toEqual({ twin: true, changed: 'IdempotentParameterMismatch' });
    expect(facts['instances']).toEqual([
      [0, 'running', 'us-east-1b', '198', 1, 'required', tags],
      [1, 'running', 'us-east-1b', '198', 1, 'required', tags],
    ]);
    const volume = [20, 'gp3', 3000, 'ci-1'];
    expect(facts).toMatchObject({
      userData: '#!/bin/sh\n',
      volumes: [volume, volume],
      tagged: true,
      status: ['ok', 'ok'],
    });
  });

  it('reads the codes of errors', () => {
    expect(facts['refused']).toEqual({
      dryRun: 'DryRunOperation',
      image: 'InvalidAMIID.NotFound',
      type: 'InvalidParameterValue',
      key: 'InvalidKeyPair.NotFound',
      terminate: 'InvalidInstanceID.NotFound',
      malformed: 'InvalidInstanceID.Malformed',
      reservedTag: 'InvalidParameterValue',
      filter: 'InvalidParameterValue',
    });
  });

  it('terminates instances with their volumes and interfaces', () => {
    const ended = ['terminated', 'Client.UserInitiatedShutdown', false];
    expect(facts).toMatchObject({ ended: [ended, ended], leftVolumes: [], leftInterfaces: [] });
  });

  it('uploads objects in parts and with tags', () => {
    expect(facts['openUploads']).toEqual(['parts.raw']);
    expect(facts['objects']).toEqual({
      listed: [
        ['disk.raw', 1_048_576],
        ['parts.raw', 5_242_890],
      ],
      tags: [{ Key: 'team', Value: 'qa' }],
      ...{ same: true, wrongHash: 'BadDigest', bucket: 'NoSuchBucket' },
    });
  });

  it('imports a snapshot, writes one, registers and copies an image, and deletes them', () => {
    expect(facts['imported']).toEqual(['completed', true, 'deleted', true]);
    expect(facts).toMatchObject({ wrongBlock: 'ValidationException', wrongCount: 'ValidationException' });
    expect(facts).toMatchObject({
      ...{ image: [['available', 'v2.0', 1]], sameName: 'InvalidAMIName.Duplicate' },
      ...{ ownImage: ['/dev/sda1', 'required'], copy: [[{ Key: 'build', Value: '2' }], true] },
      ...{ inUse: 'InvalidSnapshot.InUse', goneImage: 'InvalidAMIID.Unavailable', leftSnapshots: [] },
    });
  });

  it('receives events of a spot instance, and uses a dedicated host', () => {
    const type = 'EC2 Instance State-change Notification';
    expect(facts).toMatchObject({ spot: ['spot', 'fulfilled'], queue: false });
    expect(facts['events']).toContainEqual(['aws.ec2', type, 'pending']);
    expect(facts['host']).toEqual(['Client.InvalidHost.Occupied', true]);
  });
});

(hasAwscli ? describe : describe.skip)(hasAwscli ? 'awscli' : missing('awscli'), () => {
  let cloud: SimulatedAws;
  let folder: string;

  beforeAll(async () => {
    cloud = await startSimulatedAws({ settings: { shuttingDownMs: 10 } });
    folder = await mkdtemp(join(tmpdir(), 'simulated-aws-'));
  });

  afterAll(async () => {
    await cloud.close();
    await rm(folder, { recursive: true, force: true });
  });

  /** Returns the output of a command, or the code of its error. */
  async function aws(...args: readonly string[]): Promise<unknown> {
    const { accessKeyId, secretAccessKey } = cloud.credentials;
    const credentials = { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey };
    const env = { ...process.env, ...credentials, AWS_CONFIG_FILE: join(folder, 'config'), AWS_MAX_ATTEMPTS: '1' };
    const common = ['--region', REGION, '--endpoint-url', cloud.url, '--output', 'json', '--no-cli-pager'];
    try {
      const { stdout } = await run(AWS, [...args, ...common], { env });
      return stdout === '' ? undefined : JSON.parse(stdout);
    } catch (error) {
      const text = error instanceof Error && 'stderr' in error ? String(error.stderr) : String(error);
      return /\((\w[\w.]*)\)/.exec(text)?.[1] ?? text;
    }
  }

  it('launches a fleet of spot instances from a template, and terminates it', async () => {
    cloud.capacity.limit({ instanceType: 'c5.large', market: 'spot' }, 0);
    const data = { ImageId: cloud.publicImageId, InstanceType: 'm5.large', KeyName: 'nodepool' };
    const named = ['--launch-template-name', 'ci-template', '--launch-template-data', JSON.stringify(data)];
    expect(await aws('ec2', 'create-launch-template', ...named)).toMatchObject({
      LaunchTemplate: { LaunchTemplateName: 'ci-template', LatestVersionNumber: 1 },
    });
    const pools = [
      { InstanceType: 'c5.large', SubnetId: cloud.subnets['us-east-1a'], Priority: 1 },
      { InstanceType: 'm5.large', SubnetId: cloud.subnets['us-east-1b'], Priority: 2 },
    ];
    const fleet = await aws(
      ...['ec2', 'create-fleet', '--type', 'instant', '--client-token', 'fleet-1'],
      ...['--target-capacity-specification', 'TotalTargetCapacity=2,DefaultTargetCapacityType=spot'],
      ...['--spot-options', 'AllocationStrategy=capacity-optimized-prioritized'],
      '--launch-template-configs',
      JSON.stringify([
        { LaunchTemplateSpecification: { LaunchTemplateName: 'ci-template', Version: '1' }, Overrides: pools },
      ]),
      ...['--tag-specifications', 'ResourceType=instance,Tags=[{Key=Name,Value=ci-2}]'],
    );
    expect(fleet).toMatchObject({ Instances: [{ Lifecycle: 'spot', InstanceType: 'm5.large' }] });
    const ids = cloud.inspect.instances().map(({ id }) => id);
    const filter = 'Name=instance-lifecycle,Values=spot';
    const query = 'Reservations[].Instances[].[State.Name, Placement.AvailabilityZone, InstanceLifecycle]';
    expect(await aws('ec2', 'describe-instances', '--filters', filter, '--query', query)).toEqual([
      ['running', 'us-east-1b', 'spot'],
      ['running', 'us-east-1b', 'spot'],
    ]);
    await aws('ec2', 'terminate-instances', '--instance-ids', ...ids);
    await aws('ec2', 'wait', 'instance-terminated', '--instance-ids', ...ids);
    expect(cloud.inspect.instances().map(({ state, tags }) => [state, tags['Name']])).toEqual([
      ['terminated', 'ci-2'],
      ['terminated', 'ci-2'],
    ]);
  });

  it('uploads a disk in parts, imports it as an image, and deregisters it', async () => {
    const file = join(folder, 'disk.raw');
    await writeFile(file, Buffer.alloc(9 * 2 ** 20, 'disk'));
    await aws('s3', 'cp', file, `s3://${BUCKET}/ci/disk.raw`, '--only-show-errors');
    expect(cloud.inspect.objects()).toMatchObject([{ key: 'ci/disk.raw', size: 9 * 2 ** 20 }]);
    const disk = `Format=RAW,UserBucket={S3Bucket=${BUCKET},S3Key=ci/disk.raw}`;
    await aws('ec2', 'import-image', '--disk-containers', disk, '--architecture', 'x86_64');
    const query = 'ImportImageTasks[].[Status, ImageId]';
    const [image] = cloud.inspect.images();
    expect(await aws('ec2', 'describe-import-image-tasks', '--query', query)).toEqual([['completed', image?.id]]);
    await aws('ec2', 'deregister-image', '--image-id', image?.id ?? '');
    await aws('ec2', 'delete-snapshot', '--snapshot-id', image?.snapshotIds[0] ?? '');
    await aws('s3', 'rm', `s3://${BUCKET}/ci/disk.raw`, '--only-show-errors');
    const { images, snapshots, objects } = cloud.inspect;
    expect([images(), snapshots(), objects()]).toEqual([[], [], []]);
  });

  it('reads the code of an error', async () => {
    expect(await aws('ec2', 'describe-volumes', '--volume-ids', 'vol-0123456789abcdef0')).toBe(
      'InvalidVolume.NotFound',
    );
  });
});

/** Google's Python client, from Debian, uses the simulated cloud for all operations of a driver. */

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { BUCKET, PROJECT, startSimulatedGce, type SimulatedGce } from '../src/index.js';

const PYTHON = '/usr/bin/python3';
const hasClient = spawnSync(PYTHON, ['-c', 'import googleapiclient, google_auth_httplib2']).status === 0;
const withClient = hasClient ? describe : describe.skip;

const ZONES_OF_CENTRAL = ['us-central1-a', 'us-central1-b', 'us-central1-c', 'us-central1-f'];
const UNKNOWN = { status: 404, reason: 'notFound' };
const ALREADY_EXISTS = { status: 409, reason: 'alreadyExists' };

withClient('google-api-python-client', () => {
  let cloud: SimulatedGce;
  let facts: Readonly<Record<string, unknown>>;

  beforeAll(async () => {
    // The client is another process, so the operations take real time.
    cloud = await startSimulatedGce({ settings: { operationMs: 10, diskGrainBytes: 512 } });
    // The second piece of the upload arrives, but the client learns of a failure.
    cloud.faults.add({ on: 'objects.upload', after: 1, fault: { kind: 'status', status: 503, when: 'after' } });
    const setup = {
      url: cloud.url,
      credentials: cloud.credentialsFile,
      definitions: join(__dirname, '..', 'definitions'),
      project: PROJECT,
      bucket: BUCKET,
    };
    const script = join(__dirname, 'use-by-googleapiclient.py');
    const { stdout } = await promisify(execFile)(PYTHON, [script, JSON.stringify(setup)]);
    facts = JSON.parse(stdout) as typeof facts;
  });

  afterAll(() => cloud.close());

  it('exchanges the signature of the service account for a token with a sufficient scope', () => {
    expect(facts['tokens']).toEqual({ ofStranger: 'invalid_grant', withoutScope: 'invalid_scope' });
  });

  it('finds regions, zones and machine types', () => {
    expect(facts['places']).toEqual({
      regions: [['us-central1', 'europe-west1']],
      region: { zones: ZONES_OF_CENTRAL, cores: [4000] },
      zones: [[...ZONES_OF_CENTRAL, 'europe-west1-b', 'europe-west1-c', 'europe-west1-d']],
      zone: 'us-central1',
      machineType: [4, 16384],
      machineTypes: [['n2-standard-4']],
      unknownMachineType: UNKNOWN,
    });
  });

  it('uploads an object in pieces, and resumes after a failure', () => {
    expect(facts['objects']).toEqual({
      upload: { failures: [503], isWhole: true, metadata: { by: 'script' } },
      name: 'ci/disk.tar.gz',
      listed: [['ci/disk.tar.gz']],
      unknown: UNKNOWN,
    });
    expect(cloud.inspect.objects()).toEqual([]);
    expect(cloud.inspect.openUploads()).toBe(0);
  });

  it('creates, finds, lists and deletes images', () => {
    expect(facts['images']).toEqual({
      inserted: { type: 'insert', target: 'ci-1', progress: 100 },
      image: { status: 'READY', labels: { team: 'ci' }, family: 'ci', diskSizeGb: '1' },
      again: ALREADY_EXISTS,
      ofFamily: 'ci-1',
      published: 'debian-12-bookworm-v20240213',
      listed: [['base-1'], ['ci-1']],
      filtered: [['ci-1']],
    });
    expect(cloud.inspect.images()).toEqual([]);
  });

  it('creates and lists instances as the Python Nodepool does', () => {
    expect(facts['instances']).toEqual({
      inserted: { type: 'insert', target: 'ci-1', progress: 100 },
      sameOperation: true,
      operation: 'DONE',
      operations: ['insert'],
      instance: {
        status: 'RUNNING',
        machineType: 'n2-standard-4',
        zone: 'us-central1-a',
        metadata: [{ key: 'nodepool_node_id', value: 'ci-1' }],
        addresses: ['10.128.0.1', '127.1.0.1'],
      },
      disk: { isOfImage: true, type: 'pd-ssd', gb: '20', users: ['ci-1'] },
      again: ALREADY_EXISTS,
      listed: [['ci-1', 'ci-2'], ['ci-3']],
      filtered: [['ci-2']],
      aggregated: { 'zones/us-central1-a': ['ci-1', 'ci-2', 'ci-3'] },
      aggregatedPages: 2,
      disks: [['ci-1', 'ci-2', 'ci-3']],
      console: true,
      unknown: UNKNOWN,
      wrong: { status: 400, reason: 'invalid' },
    });
  });

  it('deletes all created resources', () => {
    expect(facts['deletion']).toEqual({
      deleted: { type: 'delete', target: 'ci-3', progress: 100 },
      left: [[]],
      disks: [[]],
      image: { type: 'delete', target: 'ci-1', progress: 100 },
      images: [['base-1']],
      again: UNKNOWN,
    });
    expect(cloud.inspect.instances()).toEqual([]);
  });
});

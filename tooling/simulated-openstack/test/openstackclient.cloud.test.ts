/**
 * OpenStack's command line client and the cloud layer of openstacksdk, from Debian, perform all operations of a driver
 * on the simulated OpenStack and, with `pnpm test:openstack`, on a real one.
 */

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { openStackUnderTest, type OpenStackUnderTest } from '../src/index.js';

const PYTHON = '/usr/bin/python3';
const hasClient = spawnSync(PYTHON, ['-c', 'import openstack, openstackclient.shell']).status === 0;
const withClient = hasClient ? describe : describe.skip;
/** Real services are slow. */
const TIMEOUT_MS = 900_000;

type Facts = Readonly<Record<string, unknown>>;

withClient('python-openstackclient and openstacksdk', () => {
  let cloud: OpenStackUnderTest;
  let facts: Facts;

  async function factsOf(name: 'real' | 'limited'): Promise<Facts> {
    const script = join(__dirname, 'use-by-openstackclient.py');
    const env = { PATH: '/usr/bin:/bin', OS_CLIENT_CONFIG_FILE: cloud.cloudsYaml };
    const { stdout } = await promisify(execFile)(PYTHON, [script, name], { env });
    return JSON.parse(stdout) as Facts;
  }

  beforeAll(async () => {
    // The clients are separate processes, so servers boot in real time.
    cloud = await openStackUnderTest({ settings: { bootMs: 50, deleteMs: 50, imagePageSize: 1 } });
    const [real, limited] = await Promise.all([factsOf('real'), factsOf('limited')]);
    facts = { ...real, ...limited };
  }, TIMEOUT_MS);

  afterAll(() => cloud.close());

  it('find services, flavors, networks and zones', () => {
    const services = ['compute', 'identity', 'image', 'network'];
    expect(facts['catalogue']).toEqual({
      services: expect.arrayContaining(services) as unknown,
      flavors: [
        ['m1.large', 4, 8192],
        ['m1.medium', 2, 4096],
        ['m1.nohost', 1, 512],
        ['m1.small', 1, 2048],
        ['m1.tiny', 1, 512],
      ],
      flavor: ['m1.small', 1, 2048, 20, {}],
      networks: ['private', 'public'],
      zones: ['nova'],
      token: ['expires', 'id', 'project_id', 'user_id'],
    });
  });

  it('upload, change, download and delete an image', () => {
    expect(facts['images']).toEqual({
      created: true,
      image: ['active', 100_000, true],
      property: 'ci',
      listed: ['active'],
      changed: 'qa',
      isSame: true,
      left: [],
    });
  });

  it('create a server with a key pair, a floating IP and a volume, and delete them', () => {
    expect(facts['servers']).toEqual({
      fingerprint: 'b9:4d:6b:a1:9e:96:28:5a:5b:25:f7:8a:ed:f1:8d:61',
      created: ['ACTIVE', 'active', null],
      server: ['ACTIVE', { nodepool_node_id: '1' }, 'nova', [{ name: 'default' }]],
      ofKey: true,
      flavor: 'm1.small',
      image: 'test-image',
      listed: [['ACTIVE', 'test-image', 'm1.small']],
      floatingIp: [[true, true]],
      console: true,
      ports: ['ACTIVE'],
      volume: {
        isAdded: true,
        listed: [true],
        inUse: ['in-use', 1, { team: 'ci' }],
        refused: expect.stringContaining('Invalid volume: Volume status must be available or error') as unknown,
        left: [],
      },
      floatingIpRemoved: [[false, false]],
      floatingIpDeleted: [],
      left: [],
      keysLeft: [],
    });
  });

  it('read quotas and limits, and the error about an exceeded quota', () => {
    const message = 'Quota exceeded for cores, ram: Requested 4, 8192, but already used 0, 0 of 3, 4096 cores, ram';
    expect(facts['quotas']).toEqual({
      quota: [3, 3, 4096, 2, 2, 10],
      limits: [3, 3, 4096, 2],
      used: [0, 0, 0, 0],
      refused: expect.stringContaining(message) as unknown,
    });
  });

  it('report refused calls and failed servers', () => {
    expect(facts['refusals']).toEqual({
      image: 'No Image found for none',
      server: "No server with a name or ID of 'cli-none' exists.",
      noHost: expect.stringMatching(/^Error creating server: cli-none-/) as unknown,
      deletion: '',
    });
  });

  it('perform the calls of the Python Nodepool through openstacksdk', () => {
    expect(facts['cloudLayer']).toEqual({
      image: ['active', 100_000, '0000000001'],
      server: {
        server: ['ACTIVE', { groups: 'nodepool' }, true],
        reachedAt: true,
        listed: [['ACTIVE', true]],
        console: true,
        isDeleted: true,
        addressesLeft: [[null, 'DOWN', true]],
        again: false,
      },
      volume: ['ACTIVE', [[2, true, 'in-use']]],
      failed: [
        'Error in creating the server (no further information available)',
        'ERROR',
        'No valid host was found. ',
        true,
      ],
      isDeleted: true,
      limits: { compute: [1000, 4000, 4_194_304], volume: [1000, 1_000_000], network: 500 },
      zones: ['nova'],
      flavors: ['m1.large', 'm1.medium', 'm1.nohost', 'm1.small', 'm1.tiny'],
    });
  });

  it('leave nothing behind', () => {
    const nothing = { servers: 0, ports: 0, floatingIps: 0, volumes: 0, images: 0 };
    expect(cloud.simulated?.inspect.leftovers() ?? nothing).toEqual(nothing);
  });
});

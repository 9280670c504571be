/** Instances that listen as ssh servers. */

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'ssh2';
import { afterEach, describe, expect, it } from '@jest/globals';
import { seededRandom } from '@nodepool/core/testing';
import { systemClock } from '@nodepool/core';
import { ExampleCloud } from '../src/cloud/cloud.js';
import { readCloudSettings } from '../src/cloud/settings-reader.js';
import type { CloudInstance } from '../src/cloud/types.js';
import { instanceSpec } from './helpers.js';

/** Limit for the start of an instance (ms); longer than on any slow machine. */
const LONG_MS = 240_000;

describe('an instance with ssh', () => {
  let cloud: ExampleCloud;

  afterEach(() => {
    cloud.close();
  });

  function openCloud(section: Parameters<typeof readCloudSettings>[0] = {}): void {
    const settings = readCloudSettings({ ssh: true, ...section });
    cloud = new ExampleCloud({ clock: systemClock, random: seededRandom(1), settings });
  }

  /** Resolves with the instance once it listens. Rejects if it fails, is deleted, or does not listen in time. */
  async function running(id: string): Promise<CloudInstance & { readonly sshPort: number }> {
    const deadline = performance.now() + LONG_MS;
    for (;;) {
      const instance = cloud.existingInstances().find((candidate) => candidate.id === id);
      if (instance?.state === 'running' && instance.sshPort !== null) return { ...instance, sshPort: instance.sshPort };
      if (instance?.state !== 'building' || performance.now() > deadline) {
        throw new Error(`the instance does not listen: ${JSON.stringify(instance)}`);
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Returns the host keys that OpenSSH's own client finds, sorted, as `<type> <key>`. */
  async function hostKeys(port: number): Promise<readonly string[]> {
    const { stdout } = await promisify(execFile)('ssh-keyscan', ['-p', String(port), '127.0.0.1']);
    const lines = stdout.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    return lines.map((line) => line.slice(line.indexOf(' ') + 1)).sort();
  }

  it('is running when it listens, and has its own host keys', async () => {
    openCloud();
    const created = await cloud.createInstance(instanceSpec());
    expect(created).toMatchObject({ state: 'building', sshPort: null, publicIpv4: '127.0.0.1' });
    const first = await running(created.id);
    const second = await running((await cloud.createInstance(instanceSpec())).id);
    const firstKeys = await hostKeys(first.sshPort);
    const secondKeys = await hostKeys(second.sshPort);
    const types = firstKeys.map((key) => key.split(' ')[0]);
    expect(types).toEqual(['ecdsa-sha2-nistp256', 'ssh-ed25519']);
    expect(firstKeys.some((key) => secondKeys.includes(key))).toBe(false);
    expect(await hostKeys(first.sshPort)).toEqual(firstKeys);
  });

  it('stops listening and closes its connections at its deletion', async () => {
    openCloud({ 'delete-time': 60 });
    const { id, sshPort } = await running((await cloud.createInstance(instanceSpec())).id);
    const socket = connect(sshPort, '127.0.0.1');
    await new Promise((resolve) => socket.once('data', resolve));
    // The connection may be closed or reset; both are correct.
    socket.on('error', () => undefined);
    const ended = new Promise((resolve) => socket.once('close', resolve));
    expect(await cloud.deleteInstance(id)).toMatchObject({ state: 'deleting', sshPort: null });
    await ended;
    const refused = await new Promise((resolve) => {
      connect(sshPort, '127.0.0.1').once('error', resolve).once('connect', resolve);
    });
    expect(refused).toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('runs commands only for the owners of the authorized keys', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'nodepool-example-keys-'));
    const run = promisify(execFile);
    const login = async (key: string, port: number): Promise<string> => {
      const options = [
        'StrictHostKeyChecking=no',
        'UserKnownHostsFile=/dev/null',
        'IdentitiesOnly=yes',
        'BatchMode=yes',
      ];
      const { stdout } = await run('ssh', [
        ...['-F', 'none', '-i', join(folder, key), '-p', String(port)],
        ...options.flatMap((option) => ['-o', option]),
        ...[`${userInfo().username}@127.0.0.1`, 'echo $((6 * 7)); exit 3'],
      ]).catch((error: unknown) => {
        const { code, stdout } = error as { readonly code: number; readonly stdout: string };
        return { stdout: `${stdout}status ${code}` };
      });
      return stdout;
    };
    try {
      for (const key of ['known', 'unknown']) {
        await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(folder, key)]);
      }
      openCloud({ 'authorized-keys': join(folder, 'known.pub') });
      const { id, sshPort } = await running((await cloud.createInstance(instanceSpec())).id);
      expect(await hostKeys(sshPort)).toHaveLength(2);
      expect(await login('known', sshPort)).toBe('42\nstatus 3');
      expect(await login('unknown', sshPort)).toBe('status 255');
      await cloud.deleteInstance(id);
      expect(await login('known', sshPort)).toBe('status 255');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('refuses logins without authorized-keys', async () => {
    openCloud();
    const { sshPort } = await running((await cloud.createInstance(instanceSpec())).id);
    const failure = await new Promise((resolve, reject) => {
      const client = new Client();
      client.once('ready', () => reject(new Error('the login succeeded')));
      client.on('error', resolve);
      client.connect({ host: '127.0.0.1', port: sshPort, username: 'root', password: 'root' });
    });
    expect(failure).toMatchObject({ level: 'client-authentication' });
  });
});

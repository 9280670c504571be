/** Starts the services that the first evening does not have, with its ZooKeeper, until their health checks succeed. */

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Podman } from './podman.js';

const HEALTHY_TIMEOUT_MS = 180_000;
const START_TIMEOUT_MS = 120_000;

interface Service {
  readonly target: string;
  /** Files in /etc/nodepool beside nodepool.yaml. */
  readonly files: Readonly<Record<string, string>>;
}

/** Resolves with the problems. */
export async function checkServices(
  podman: Podman,
  { scratch, network, configuration }: { scratch: string; network: string; configuration: string },
  say: (line: string) => void,
): Promise<string[]> {
  const problems: string[] = [];
  for (const { target, files } of await services(podman)) {
    const name = `deploy_${target}_check`;
    const folder = join(scratch, target);
    await mkdir(folder);
    await writeFile(join(folder, 'nodepool.yaml'), `${configuration}\nimages-dir: /var/lib/nodepool/images\n`);
    for (const [file, text] of Object.entries(files)) await writeFile(join(folder, file), text);
    const mounts = ['--volume', `${folder}:/etc/nodepool:ro`, '--volume', '/var/lib/nodepool', '--tmpfs', '/tmp'];
    const image = `localhost/nodepool-${target}`;
    try {
      await podman.run(['run', '--detach', '--name', name, '--network', network, '--read-only', ...mounts, image], {
        timeoutMs: START_TIMEOUT_MS,
      });
      await podman.healthy(name, HEALTHY_TIMEOUT_MS);
      const user = (await podman.run(['exec', name, 'id', '-un'])).trim();
      if (user !== 'nodepool') problems.push(`${image} runs as the user ${user}`);
      say(`${image} is healthy`);
    } catch (error) {
      const log = await podman.run(['logs', '--tail', '20', name]).catch(String);
      problems.push(`${image}: ${String(error)}\n${log}`);
    } finally {
      await podman.run(['rm', '--force', '--ignore', '--volumes', name], { cleanup: true });
    }
  }
  return problems;
}

async function services(podman: Podman): Promise<readonly Service[]> {
  const key = await podman.run(['genrsa', '2048'], { program: 'openssl' });
  const github = {
    installations: [
      {
        name: 'acme',
        url: 'https://github.com/acme',
        app: { 'client-id': 'Iv23liABCDEFGHIJKLMN', 'installation-id': 12_345_678, 'private-key': 'app.pem' },
        'scale-sets': [
          { name: 'linux', labels: ['linux'], 'node-label': 'debian', 'max-runners': 1, identity: 'app.pem' },
        ],
      },
    ],
  };
  const gateway = { listen: { address: '127.0.0.1', port: 8007 }, tokens: 'tokens.yaml' };
  return [
    { target: 'builder', files: {} },
    { target: 'gateway', files: { 'gateway.yaml': JSON.stringify(gateway), 'tokens.yaml': 'tokens: []\n' } },
    { target: 'bridge-github', files: { 'github.yaml': JSON.stringify(github), 'app.pem': key } },
  ];
}

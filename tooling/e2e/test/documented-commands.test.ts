/** Runs the commands that the documentation shows as on a real site. */

import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { conditionMet, configFileOf, Program, programPath } from '@nodepool/harness';
import { sleep, systemClock } from '@nodepool/core';
import { Site } from './site.js';

const DOCS = join(__dirname, '..', '..', '..', 'docs');
/** Pages whose blocks name this file as their test. */
const PAGES = ['getting-started.md', 'operating.md', 'writing-a-driver.md', 'reference/web.md'];
const MARKED = /<!-- executed by tooling\/e2e\/test\/documented-commands\.test\.ts -->\s+```sh\n(.*?)```/gs;
const DEADLINE_MS = 240_000;

const blocks = PAGES.flatMap((page) =>
  [...readFileSync(join(DOCS, page), 'utf8').matchAll(MARKED)].map(([, text = '']) => ({ page, text: text.trim() })),
);

describe('the documented commands, on a site with a ready node', () => {
  let site: Site;
  let folder: string;
  let launcher: Program;
  let webEndpoint: string;

  beforeAll(async () => {
    site = await Site.start();
    launcher = await site.launcher({ minReady: { debian: 2 } });
    folder = mkdtempSync(join(tmpdir(), 'documented-commands-'));
    const config = configFileOf({ folder: site.folder, name: launcher.name });
    copyFileSync(config, join(folder, 'nodepool.yaml'));
    writeFileSync(join(folder, 'secure.yaml'), '{}\n');
    const { webapp } = JSON.parse(readFileSync(config, 'utf8')) as { readonly webapp: { readonly port: number } };
    webEndpoint = `http://127.0.0.1:${webapp.port}`;
    // Without -c, the program would read /etc/nodepool/nodepool.yaml of the machine.
    writeProgram(
      'nodepool',
      `case "$*" in -c*) ;; *) set -- -c nodepool.yaml "$@" ;; esac
exec '${process.execPath}' '${programPath('nodepool')}' --connect-timeout 300 "$@"`,
    );
    writeProgram('npx', 'exec "$@"');
  });

  afterAll(async () => {
    await site.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  function writeProgram(name: string, script: string): void {
    mkdirSync(join(folder, 'bin'), { recursive: true });
    writeFileSync(join(folder, 'bin', name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(folder, 'bin', name), 0o755);
  }

  /** Resolves with the id of a ready node. */
  async function readyNode(): Promise<string> {
    let ready: string | undefined;
    await launcher.while('has a node that is ready', DEADLINE_MS, (signal) =>
      conditionMet(site.zooKeeper, '/nodepool/nodes', signal, async () => {
        const { children } = await site.zooKeeper.children('/nodepool/nodes');
        for (const id of children) {
          const { data } = await site.zooKeeper.get(`/nodepool/nodes/${id}`);
          const { state } = JSON.parse(Buffer.from(data).toString()) as { readonly state: string };
          if (state === 'ready') ready = id;
        }
        return ready !== undefined;
      }),
    );
    return ready ?? '';
  }

  it('exist', () => {
    expect(new Set(blocks.map(({ page }) => page))).toEqual(new Set(PAGES));
  });

  it.each(blocks)('$page: $text', async ({ page, text }) => {
    const script = text
      .replaceAll(/\b42\b/g, await readyNode())
      .replaceAll('/var/backups', folder)
      .replaceAll('http://nl01.example.org:8005', webEndpoint);
    const command = await Program.start({
      name: page,
      command: '/bin/sh',
      args: ['-ec', script.startsWith('npx') ? `exec ${script}` : script],
      logFile: join(folder, `${blocks.findIndex((block) => block.text === text && block.page === page)}.log`),
      cwd: folder,
      env: { PATH: `${join(folder, 'bin')}${delimiter}${process.env['PATH'] ?? ''}` },
    });
    if (script.includes(' request ')) {
      await command.while('holds its node', DEADLINE_MS, async (signal) => {
        while (!command.logTail().includes('until interrupted')) await sleep(systemClock, 50, signal);
      });
      command.signal('SIGINT');
    }
    const { code } = await command.ends(DEADLINE_MS);
    expect({ code, output: command.logTail() }).toEqual({ code: 0, output: expect.any(String) });
  });
});

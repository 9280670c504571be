/** TLS to Debian's ZooKeeper as described in `docs/operating.md`, with the programs of this repository. */

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  closeSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { freePorts, makeCertificates } from '@nodepool/dev-zookeeper';
import { Program, programPath } from '@nodepool/harness';
import { sleep, systemClock } from '@nodepool/core';

const PAGE = readFileSync(join(__dirname, '..', '..', '..', 'docs', 'operating.md'), 'utf8');
const DEBIAN_CONFIGURATION = '/etc/zookeeper/conf_example';
const DEADLINE_MS = 240_000;

let folder: string;
let server: ChildProcess | undefined;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'documented-tls-'));
});

afterEach(async () => {
  if (server?.pid !== undefined && server.exitCode === null) {
    const ended = once(server, 'exit');
    server.kill('SIGKILL');
    await ended;
  }
  rmSync(folder, { recursive: true, force: true });
});

/** Returns a block of the section about TLS with the folders and ports of this test. */
function block(language: string, replace: Readonly<Record<string, string>>): string {
  const section = PAGE.slice(PAGE.indexOf('### With TLS'), PAGE.indexOf('### Backups'));
  const text = new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 's').exec(section)?.[1];
  if (text === undefined) throw new Error(`the section about TLS has no block of ${language}`);
  return adapted(text, replace);
}

function adapted(text: string, replace: Readonly<Record<string, string>>): string {
  return Object.entries(replace).reduce((result, [from, to]) => result.replaceAll(from, to), text);
}

/** Resolves once the server accepts connections; rejects with its log if it ends. */
async function listening(port: number): Promise<void> {
  while (server?.exitCode === null) {
    const socket = connect(port, 'localhost');
    const connected = await Promise.race([
      once(socket, 'connect').then(() => true),
      once(socket, 'close').then(() => false),
    ]).catch(() => false);
    socket.destroy();
    if (connected) return;
    await sleep(systemClock, 50);
  }
  throw new Error(`the server ended:\n${readFileSync(join(folder, 'server.log'), 'utf8')}`);
}

it('a ZooKeeper with the documented files serves the command line', async () => {
  const [securePort = 0, plainPort = 0] = await freePorts(2);
  const certificates = await makeCertificates(join(folder, 'tls'));
  const here = { '/etc/zookeeper': folder, '/tmp/zookeeper': join(folder, 'data'), '/var/log/zookeeper': folder };
  const ports = { '=2281': `=${securePort}`, 'clientPort=2181': `clientPort=${plainPort}` };

  cpSync(DEBIAN_CONFIGURATION, join(folder, 'conf'), { recursive: true });
  mkdirSync(join(folder, 'data'));
  cpSync(certificates.serverKeyStore, join(folder, 'server.pem'));
  cpSync(certificates.ca, join(folder, 'ca.pem'));
  for (const file of ['zoo.cfg', 'environment']) {
    const path = join(folder, 'conf', file);
    writeFileSync(path, adapted(readFileSync(path, 'utf8'), { ...here, ...ports }));
  }
  appendFileSync(join(folder, 'conf', 'zoo.cfg'), `\n${block('properties', { ...here, ...ports })}`);
  appendFileSync(join(folder, 'conf', 'environment'), `\n${block('sh', here)}`);
  // Starts ZooKeeper as Debian's zkServer.sh does.
  const start = `. "$1/conf/environment"; exec "$JAVA" $JAVA_OPTS -cp "$CLASSPATH" $ZOOMAIN "$ZOOCFG"`;
  const log = openSync(join(folder, 'server.log'), 'a');
  server = spawn('/bin/sh', ['-c', start, 'sh', folder], { stdio: ['ignore', log, log] });
  closeSync(log);
  await listening(securePort);

  const clientPaths = {
    '/etc/nodepool/client.pem': certificates.clientCert,
    '/etc/nodepool/client.key': certificates.clientKey,
    '/etc/nodepool/ca.pem': certificates.ca,
  };
  const servers = { 'zk01.example.org # port 2281 unless given': `localhost\n    port: ${securePort}` };
  const others = { '  - host: zk02.example.org\n': '', '  - host: zk03.example.org\n': '' };
  const config = join(folder, 'nodepool.yaml');
  writeFileSync(config, `${block('yaml', { ...clientPaths, ...servers, ...others })}labels: []\nproviders: []\n`);
  const command = await Program.start({
    name: 'nodepool',
    command: process.execPath,
    args: [programPath('nodepool'), '-c', config, '--connect-timeout', '300', 'list'],
    logFile: join(folder, 'list.log'),
  });
  expect([(await command.ends(DEADLINE_MS)).code, command.logTail()]).toEqual([0, expect.stringContaining('| ID ')]);
});

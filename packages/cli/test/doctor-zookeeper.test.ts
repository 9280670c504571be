/** The findings of `nodepool doctor` about ZooKeeper's servers and certificates. */

import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { makeCertificates, type Certificates } from '@nodepool/dev-zookeeper';
import { checkCertificates } from '../src/doctor/certificates.js';
import type { Finding } from '../src/doctor/finding.js';
import { checkServers } from '../src/doctor/zookeeper-servers.js';
import { fakeZooKeeper, SRVR, type FakeZooKeeper } from './fake-zookeeper.js';

const DAY_MS = 86_400_000;

/** Time of the checks; certificates are made before it. */
let now = Date.now();
const fakes: FakeZooKeeper[] = [];

afterEach(async () => {
  for (const fake of fakes.splice(0)) await fake.stop();
});

/** Starts a server per answer, and examines them. `refused` is a port on which nothing listens. */
async function examined(answers: readonly string[], ...refused: number[]): Promise<readonly string[]> {
  const started = await Promise.all(answers.map((answer) => fakeZooKeeper(answer)));
  fakes.push(...started);
  const servers = [...started.map(({ port }) => port), ...refused].map((port) => `127.0.0.1:${port}`);
  const config = { servers, chroot: '', tls: undefined, sessionTimeoutMs: 10_000 };
  const found = await checkServers(config, now);
  return found.map((finding) => words(finding, servers));
}

function words({ severity, object, reason }: Finding, servers: readonly string[]): string {
  return servers.reduce(
    (text, server, index) => text.replaceAll(server, `#${index}`),
    `${severity} ${object}: ${reason}`,
  );
}

const srvr = (mode: string, text = SRVR): string => text.replace('standalone', mode);

const NO_QUORUM = 'This ZooKeeper instance is not currently serving requests\n';

describe('the check of the servers', () => {
  it('recognises an ensemble with a leader', async () => {
    expect(await examined([srvr('leader'), srvr('follower'), srvr('follower')])).toEqual([
      'ok #0: leader, version 3.8.0, mean latency 1.2426 ms',
      'ok #1: follower, version 3.8.0, mean latency 1.2426 ms',
      'ok #2: follower, version 3.8.0, mean latency 1.2426 ms',
    ]);
  });

  it.each<readonly [string, readonly string[], readonly number[], readonly string[]]>([
    ['are a single one', [SRVR], [], ['info ensemble: a single server: Nodepool pauses while it is down']],
    ['are separate', [SRVR, srvr('follower')], [], ['error ensemble: #0 runs standalone']],
    ['lack the leader', [srvr('follower'), srvr('follower')], [], ['warning ensemble: none of the configured servers']],
    ['lack one', [srvr('leader'), srvr('follower')], [1], ['warning #2: connect ECONNREFUSED']],
    ['are away', [], [1], ['error #0: connect ECONNREFUSED']],
    [
      'an ensemble without its leader in the list',
      [srvr('follower'), srvr('follower')],
      [],
      ['warning ensemble: none of the configured servers'],
    ],
    [
      'an ensemble of three with an unreachable server',
      [srvr('leader'), srvr('follower')],
      [1],
      ['warning #2: connect ECONNREFUSED', 'info ensemble: 2 of 3 servers serve: Nodepool pauses if another one fails'],
    ],
    [
      'an ensemble of five with a server without quorum',
      [srvr('leader'), srvr('follower'), srvr('follower'), srvr('follower'), NO_QUORUM],
      [],
      ['error #4: has no quorum', 'info ensemble: 4 of 5 servers serve: Nodepool pauses if 2 more fail'],
    ],
    ['unreachable servers', [], [1], ['error #0: connect ECONNREFUSED']],
    ['a server without quorum', [NO_QUORUM], [], ['error #0: has no quorum']],
    [
      'a server that does not report its state',
      ['srvr is not executed because it is not in the whitelist.\n'],
      [],
      ['info #0: does not report its state; 4lw.commands.whitelist'],
    ],
    ['an old server', [SRVR.replace('3.8.0', '3.5.9')], [], ['error #0: version 3.5.9 is too old']],
    [
      'a slow server',
      [SRVR.replace('1.2426', '80.5')],
      [],
      ['warning #0: standalone, version 3.8.0, mean latency 80.5 ms: slow'],
    ],
    ['an overloaded server', [SRVR.replace('Outstanding: 0', 'Outstanding: 999')], [], ['999 unanswered requests']],
    [
      'different versions',
      [srvr('leader'), srvr('follower', SRVR.replace('3.8.0', '3.9.1'))],
      [],
      ['info ensemble: its servers have different versions: 3.8.0, 3.9.1'],
    ],
  ])('reports %s', async (_name, answers, refused, expected) => {
    const found = await examined(answers, ...refused);
    for (const text of expected) expect(found).toContainEqual(expect.stringContaining(text));
  });
});

describe('the check of certificates', () => {
  let folder: string;
  let pem: Certificates;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'nodepool-doctor-'));
    pem = await makeCertificates(folder);
    now = Date.now() + 1000;
  });

  afterAll(() => rmSync(folder, { recursive: true }));

  interface Files {
    readonly certFile?: string;
    readonly keyFile?: string;
    readonly caFile?: string;
  }

  function settings(files: Files = {}, servers: readonly string[] = []): Parameters<typeof checkServers>[0] {
    const tls = { certFile: pem.clientCert, keyFile: pem.clientKey, caFile: pem.ca, verifyHostname: true, ...files };
    return { servers, chroot: '', tls, sessionTimeoutMs: 10_000 };
  }

  async function problems(files: Files, time = now): Promise<readonly string[]> {
    const found = await checkCertificates(settings(files), time);
    return found.filter(({ severity }) => severity !== 'ok').map((finding) => words(finding, []));
  }

  it('reports certificates that expire within a month or have expired', async () => {
    chmodSync(pem.clientKey, 0o600);
    expect(await problems({}, now - DAY_MS)).toContainEqual(
      expect.stringMatching(/^error .*client.pem: is valid from/),
    );
    expect(await problems({}, now + 20 * DAY_MS)).toContainEqual(
      expect.stringMatching(/^warning .*client\.pem: expires in 9 days, on \d{4}-\d\d-\d\d$/),
    );
    expect(await problems({}, now + 31 * DAY_MS)).toEqual([
      expect.stringMatching(/^error .*client\.pem: expired on /),
      expect.stringMatching(/^error .*ca\.pem \(CN=test authority\): expired on /),
    ]);
    const [client, authority] = await checkCertificates(settings({}), now + 31 * DAY_MS);
    expect(client?.remedy).toContain('use the new file from their next connection on');
    expect(authority?.remedy).toContain('in zookeeper-tls.ca of all programs and at every server');
  });

  it('reports a key of another certificate, and permissions that let other users read it', async () => {
    expect(await problems({ keyFile: pem.serverKey })).toContainEqual(
      expect.stringMatching(/^error .*server\.key: is not the key of .*client\.pem$/),
    );
    chmodSync(pem.clientKey, 0o644);
    expect(await problems({})).toContainEqual(
      expect.stringMatching(/^warning .*client\.key: every user of this machine can read the key$/),
    );
    chmodSync(pem.clientKey, 0o600);
  });

  it('reports unreadable files', async () => {
    const broken = join(folder, 'broken.pem');
    writeFileSync(broken, 'not a certificate');
    const missing = join(folder, 'missing.pem');
    const found = await problems({ certFile: missing, caFile: broken, keyFile: broken });
    expect(found[0]).toBe(`error ${missing}: cannot be used: there is no such file`);
    expect(found.map((text) => text.split(': ').slice(0, 2).join(': '))).toEqual([
      expect.stringMatching(/^error .*missing\.pem: cannot be used$/),
      expect.stringMatching(/^error .*broken\.pem: cannot be used$/),
      expect.stringMatching(/^error .*broken\.pem: cannot be used$/),
    ]);
  });

  it('is not blamed on the servers if its files cannot be read', async () => {
    const findings = await checkServers(settings({ certFile: join(folder, 'missing.pem') }, ['127.0.0.1:1']), now);
    expect(findings).toEqual([
      {
        ...{ check: 'zookeeper', severity: 'error', object: 'servers' },
        reason: 'were not asked, because files of zookeeper-tls cannot be read',
        remedy: 'see the findings about certificates',
      },
    ]);
  });

  it('includes the servers’ certificates, and the command connects with TLS', async () => {
    const fake = await fakeZooKeeper(srvr('follower'), { cert: pem.serverCert, key: pem.serverKey, ca: pem.ca });
    fakes.push(fake);
    const server = `127.0.0.1:${fake.port}`;
    const found = await checkServers(settings({}, [server]), now);
    expect(found.map((finding) => words(finding, [server]))).toEqual([
      expect.stringMatching(/^warning certificate of #0: expires in (29|30) days/),
      'ok #0: follower, version 3.8.0, mean latency 1.2426 ms',
    ]);
    expect(found[0]?.remedy).toBe(
      'renew the certificate at this server, and restart the server unless it reloads its key store',
    );
    const other = await makeCertificates(join(folder, 'other'));
    const refused = await checkServers(settings({ caFile: other.ca }, [server]), now);
    expect(words(refused[0]!, [server])).toMatch(/^error certificate of #0: is not accepted: /);
    expect(refused[0]?.remedy).toContain('install the authority that has signed it');
  });
});

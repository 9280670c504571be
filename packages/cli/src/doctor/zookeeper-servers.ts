/** Asks each ZooKeeper server for its state with the command `srvr`, which every server allows by default. */

import { readFile } from 'node:fs/promises';
import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls, TLSSocket } from 'node:tls';
import { reasonOf } from '@nodepool/core';
import type { ZooKeeperConfig } from '@nodepool/config';
import { Findings, type Finding } from './finding.js';
import { checkExpiry, RENEWALS } from './certificates.js';

const TIMEOUT_MS = 4000;
const MAX_ANSWER_BYTES = 64 * 1024;
/** A server that answers more slowly delays every launch. */
const SLOW_MS = 50;
/** Requests that a server has received but not answered. */
const MANY_OUTSTANDING = 100;

const NO_QUORUM = /not currently serving requests/;

interface ServerState {
  readonly server: string;
  /** The answer, or the reason why there is none. */
  readonly answer: string | undefined;
  readonly reason: string | undefined;
}

/** Checks all servers. `now` is in milliseconds since the epoch. */
export async function checkServers(config: ZooKeeperConfig, now: number): Promise<readonly Finding[]> {
  const findings = new Findings('zookeeper');
  let tls: TlsFiles | undefined;
  try {
    tls = await readTls(config.tls);
  } catch {
    const remedy = 'see the findings about certificates';
    findings.error('servers', 'were not asked, because files of zookeeper-tls cannot be read', remedy);
    return findings.list;
  }
  const states = await Promise.all(config.servers.map((server) => askServer(server, tls, now, findings)));
  const modes = new Map<string, string[]>();
  const versions = new Set<string>();
  for (const state of states) {
    const mode = reportServer(state, states.length, findings);
    if (mode !== undefined) modes.set(mode, [...(modes.get(mode) ?? []), state.server]);
    const version = fieldOf(state.answer, /^Zookeeper version: (\d+\.\d+\.\d+)/m);
    if (version !== undefined) versions.add(version);
  }
  reportEnsemble(states.length, modes, findings);
  reportSpareServers(states, modes, findings);
  if (versions.size > 1) findings.info('ensemble', `its servers have different versions: ${[...versions].join(', ')}`);
  return findings.list;
}

/** Reports one server. Returns its mode, if known. */
function reportServer({ server, answer, reason }: ServerState, count: number, findings: Findings): string | undefined {
  if (answer === undefined) {
    const remedy = 'start the server, or correct zookeeper-servers, zookeeper-tls and the firewall';
    if (count === 1) findings.error(server, reason ?? 'no answer', remedy);
    else findings.warning(server, reason ?? 'no answer', remedy);
    return undefined;
  }
  const mode = fieldOf(answer, /^Mode: (\w+)/m);
  if (mode === undefined) {
    if (NO_QUORUM.test(answer)) {
      findings.error(server, 'has no quorum', 'start the other servers of the ensemble, and let them reach each other');
    } else {
      findings.info(server, 'does not report its state; 4lw.commands.whitelist of its zoo.cfg has no srvr');
    }
    return undefined;
  }
  const version = fieldOf(answer, /^Zookeeper version: ([^,-]+)/m) ?? 'unknown version';
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const average = Number(fieldOf(answer, /^Latency min\/avg\/max: [\d.]+\/([\d.]+)\//m) ?? 0);
  const outstanding = Number(fieldOf(answer, /^Outstanding: (\d+)/m) ?? 0);
  const state = `${mode}, version ${version}, mean latency ${average} ms`;
  if (major < 3 || (major === 3 && minor < 6)) {
    findings.error(server, `version ${version} is too old`, 'upgrade the server to ZooKeeper 3.6 to 3.9');
  } else if (average > SLOW_MS) {
    findings.warning(server, `${state}: slow`, 'give the server a disk of its own for dataLogDir, and enough memory');
  } else if (outstanding > MANY_OUTSTANDING) {
    findings.warning(
      server,
      `${state}, ${outstanding} unanswered requests`,
      'look for clients that overload the server',
    );
  } else {
    findings.ok(server, state);
  }
  return mode;
}

function reportEnsemble(count: number, modes: ReadonlyMap<string, readonly string[]>, findings: Findings): void {
  const standalone = modes.get('standalone') ?? [];
  const known = [...modes.values()].flat().length;
  if (count > 1 && standalone.length > 0) {
    findings.error(
      'ensemble',
      `${standalone.join(', ')} ${standalone.length === 1 ? 'runs' : 'run'} standalone: programs see different data on each server`,
      'list the servers of one ensemble in zoo.cfg of each server (server.1=…)',
    );
  } else if (count > 1 && known === count && !modes.has('leader')) {
    findings.warning(
      'ensemble',
      'none of the configured servers is the leader',
      'add all servers to zookeeper-servers',
    );
  }
  if (count === 1 && standalone.length === 1)
    findings.info('ensemble', 'a single server: Nodepool pauses while it is down');
}

/** Reports how many servers may still fail, if a server does not serve and the ensemble has a quorum. */
function reportSpareServers(
  states: readonly ServerState[],
  modes: ReadonlyMap<string, readonly string[]>,
  findings: Findings,
): void {
  const count = states.length;
  const serving = states.filter(({ answer }) => answer !== undefined && !NO_QUORUM.test(answer)).length;
  // Observers do not vote.
  if (serving === count || !modes.has('leader') || modes.has('observer')) return;
  const spare = serving - (Math.floor(count / 2) + 1);
  if (spare < 0) return;
  const failing = spare === 0 ? 'another one fails' : `${spare + 1} more fail`;
  findings.info('ensemble', `${serving} of ${count} servers serve: Nodepool pauses if ${failing}`);
}

interface TlsFiles {
  readonly ca: Buffer;
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly verifyHostname: boolean;
}

async function readTls(tls: ZooKeeperConfig['tls']): Promise<TlsFiles | undefined> {
  if (tls === undefined) return undefined;
  const [ca, cert, key] = await Promise.all([readFile(tls.caFile), readFile(tls.certFile), readFile(tls.keyFile)]);
  return { ca, cert, key, verifyHostname: tls.verifyHostname };
}

async function askServer(
  server: string,
  tls: TlsFiles | undefined,
  now: number,
  findings: Findings,
): Promise<ServerState> {
  try {
    const socket = await open(server, tls);
    if (socket instanceof TLSSocket) reportCertificate(socket, server, now, findings);
    return { server, answer: await srvr(socket), reason: undefined };
  } catch (error) {
    return { server, answer: undefined, reason: reasonOf(error) };
  }
}

/** Opens a connection, also to a server whose certificate is not accepted. */
async function open(server: string, tls: TlsFiles | undefined): Promise<Socket> {
  const { hostname, port } = new URL(`tcp://${server}`);
  const host = hostname.replace(/^\[|\]$/g, '');
  const common = { host, port: Number(port), timeout: TIMEOUT_MS };
  if (tls === undefined) return opened(connect(common), 'connect');
  const { ca, cert, key, verifyHostname } = tls;
  const servername = isIP(host) === 0 ? { servername: host } : {};
  const anyHost = verifyHostname ? {} : { checkServerIdentity: () => undefined };
  const options = { ...common, ...servername, ...anyHost, ca, cert, key, rejectUnauthorized: false };
  return opened(connectTls(options), 'secureConnect');
}

function opened(socket: Socket, event: 'connect' | 'secureConnect'): Promise<Socket> {
  return new Promise((resolve, reject) => {
    socket.once(event, () => resolve(socket));
    socket.once('error', reject);
    socket.once('timeout', () => socket.destroy(new Error(`no answer within ${TIMEOUT_MS / 1000} s`)));
  });
}

function srvr(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = '';
    socket.setEncoding('utf8');
    socket.on('data', (part: string) => {
      answer += part;
      if (answer.length > MAX_ANSWER_BYTES) socket.destroy();
    });
    socket.once('error', reject);
    socket.once('close', () => resolve(answer));
    socket.write('srvr');
  });
}

function reportCertificate(socket: TLSSocket, server: string, now: number, findings: Findings): void {
  const name = `certificate of ${server}`;
  if (!socket.authorized) {
    // The type says Error, but Node.js sets the code as a text.
    const code = String(socket.authorizationError);
    findings.error(name, `is not accepted: ${code}`, remedyOf(code));
    return;
  }
  const certificate = socket.getPeerX509Certificate();
  if (certificate !== undefined) checkExpiry(certificate, name, now, findings, RENEWALS.server);
}

/** Returns the remedy for a server's certificate that TLS does not accept. */
function remedyOf(code: string): string {
  if (code === 'CERT_HAS_EXPIRED') return RENEWALS.server;
  if (code === 'CERT_NOT_YET_VALID') return 'compare the clocks of this machine and of the server';
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return 'issue a certificate for the name in zookeeper-servers, or set verify-hostname in zookeeper-tls to false';
  }
  return 'let the authority in zookeeper-tls.ca sign it, or install the authority that has signed it';
}

function fieldOf(answer: string | undefined, expression: RegExp): string | undefined {
  return answer === undefined ? undefined : expression.exec(answer)?.[1];
}

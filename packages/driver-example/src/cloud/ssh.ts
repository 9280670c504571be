/** The ssh server of an instance, with its own host keys and port on 127.0.0.1. */

import { createRequire } from 'node:module';
import { createServer, type Server, type Socket } from 'node:net';
import type * as Ssh2 from 'ssh2';
import { Sshd } from './sshd.js';

const load = createRequire(__filename);

/** Loads ssh2, which the published package contains as a bundle, for the first instance with an ssh server. */
function loadSsh2(): typeof Ssh2 {
  return load('#ssh2') as typeof Ssh2;
}

const ADDRESS = '127.0.0.1';

/** Creates host keys of two types that are cheap to generate. */
function makeHostKeys(): string[] {
  return [makeEd25519Key(), loadSsh2().utils.generateKeyPairSync('ecdsa', { bits: 256 }).private];
}

/** Creates an ed25519 key. ssh2 strips leading zeros and then cannot read the key, which affects one key in 256. */
function makeEd25519Key(): string {
  const { utils } = loadSsh2();
  for (;;) {
    const key = utils.generateKeyPairSync('ed25519').private;
    if (!(utils.parseKey(key) instanceof Error)) return key;
  }
}

export class SshServer {
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();
  private readonly sshd: Sshd | undefined;
  private listeningOn: number | undefined;

  /**
   * Starts listening immediately; `onFailure` is called if the server cannot listen. Without `authorizedKeys`, the path
   * of a file, the server rejects every login.
   */
  constructor(authorizedKeys: string | undefined, onFailure: (error: Error) => void) {
    const hostKeys = makeHostKeys();
    this.sshd = authorizedKeys === undefined ? undefined : new Sshd(hostKeys, authorizedKeys, onFailure);
    const protocol = new (loadSsh2().Server)({ hostKeys }, refuseLogins);
    this.server = createServer({ pauseOnConnect: this.sshd !== undefined }, (socket) => {
      this.sockets.add(socket);
      socket.once('close', () => this.sockets.delete(socket));
      if (this.sshd === undefined) protocol.injectSocket(socket);
      else this.sshd.serve(socket);
    });
    this.server.on('error', onFailure);
    this.server.listen(0, ADDRESS, () => {
      const address = this.server.address();
      if (address !== null && typeof address === 'object') this.listeningOn = address.port;
    });
    // The server of an instance must not prevent the launcher's process from ending.
    this.server.unref();
  }

  /** Port of the server; undefined while it does not listen. */
  get port(): number | undefined {
    return this.listeningOn;
  }

  close(): void {
    this.listeningOn = undefined;
    this.server.close();
    this.sshd?.close();
    for (const socket of this.sockets) socket.destroy();
  }
}

function refuseLogins(connection: Ssh2.Connection): void {
  connection.on('authentication', (attempt) => {
    attempt.reject([]);
  });
  // Key scanners disconnect during the handshake, which is not an error.
  connection.on('error', () => undefined);
}

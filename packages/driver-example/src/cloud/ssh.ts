/** The ssh server of an instance: host keys and a port of its own on 127.0.0.1; every login is refused. */

import { createRequire } from 'node:module';
import { createServer, type Server, type Socket } from 'node:net';
import type * as Ssh2 from 'ssh2';

// The published package contains a bundle of it.
const { Server: SshProtocol, utils } = createRequire(__filename)('#ssh2') as typeof Ssh2;

const ADDRESS = '127.0.0.1';

/** Host keys of these types; both cheap to make. */
function makeHostKeys(): string[] {
  return [makeEd25519Key(), utils.generateKeyPairSync('ecdsa', { bits: 256 }).private];
}

/** ssh2 cuts off leading zeros when it makes such a key, and cannot read it then: that is one in 256. */
function makeEd25519Key(): string {
  for (;;) {
    const key = utils.generateKeyPairSync('ed25519').private;
    if (!(utils.parseKey(key) instanceof Error)) return key;
  }
}

export class SshServer {
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();
  private listeningOn: number | undefined;

  /** Starts to listen at once; `onFailure` is told when it cannot. */
  constructor(onFailure: (error: Error) => void) {
    const protocol = new SshProtocol({ hostKeys: makeHostKeys() }, refuseLogins);
    this.server = createServer((socket) => {
      this.sockets.add(socket);
      socket.once('close', () => this.sockets.delete(socket));
      protocol.injectSocket(socket);
    });
    this.server.on('error', onFailure);
    this.server.listen(0, ADDRESS, () => {
      const address = this.server.address();
      if (address !== null && typeof address === 'object') this.listeningOn = address.port;
    });
    // An instance inside a launcher must not keep that from ending.
    this.server.unref();
  }

  /** Undefined as long as it does not listen. */
  get port(): number | undefined {
    return this.listeningOn;
  }

  close(): void {
    this.listeningOn = undefined;
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
  }
}

function refuseLogins(connection: Ssh2.Connection): void {
  connection.on('authentication', (attempt) => {
    attempt.reject([]);
  });
  // Scanners hang up in the middle of the handshake: nothing that anybody has to hear of.
  connection.on('error', () => undefined);
}

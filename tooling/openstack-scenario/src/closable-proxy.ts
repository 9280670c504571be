/** A proxy in front of the APIs of a cloud that can be closed, which simulates a region that is down. */

import { readFile, writeFile } from 'node:fs/promises';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { isJsonObject, type JsonObject } from '@nodepool/core';
import { parseYaml } from '@nodepool/pyyaml';
import { ApiClient } from '@nodepool/simulated-openstack';

const SERVICES = ['compute', 'network', 'image', 'volume'] as const;

export interface ClosableProxy {
  /** Path of a clouds.yaml with the original clouds and the new one. */
  readonly cloudsYaml: string;
  /** Name of the cloud whose APIs are behind the proxy. */
  readonly cloud: string;
  /** Cuts all connections and refuses new ones. */
  close(): Promise<void>;
  open(): Promise<void>;
}

/** Creates a proxy in front of the APIs of a cloud. Writes its clouds.yaml into `folder`. */
export async function startClosableProxy(cloudsYaml: string, cloud: string, folder: string): Promise<ClosableProxy> {
  const clouds = await cloudsIn(cloudsYaml);
  const section = clouds[cloud];
  const auth = isJsonObject(section) ? section['auth'] : undefined;
  if (!isJsonObject(section) || !isJsonObject(auth)) throw new Error(`${cloudsYaml} has no credentials of ${cloud}`);
  const client = await ApiClient.logIn(cloudsYaml, cloud);
  // Forwarders by port of the service, because several services can share a port.
  const forwarders = new Map<string, Forwarder>();
  const proxied = async (url: string): Promise<string> => {
    const { port } = new URL(url);
    const forwarder = forwarders.get(port) ?? (await Forwarder.start(Number(port)));
    forwarders.set(port, forwarder);
    return url.replace(`:${port}`, `:${forwarder.port}`);
  };
  const overrides: Record<string, string> = {};
  for (const service of SERVICES) {
    overrides[`${service}_endpoint_override`] = await proxied(client.endpoint(service));
  }
  const behindProxy = { ...section, ...overrides, auth: { ...auth, auth_url: await proxied(client.authUrl) } };
  const name = `${cloud}-behind-proxy`;
  const file = join(folder, 'clouds.yaml');
  await writeFile(file, JSON.stringify({ clouds: { ...clouds, [name]: behindProxy } }));
  const all = async (change: (forwarder: Forwarder) => Promise<void>): Promise<void> => {
    await Promise.all([...forwarders.values()].map(change));
  };
  return {
    cloudsYaml: file,
    cloud: name,
    close: () => all((forwarder) => forwarder.close()),
    open: () => all((forwarder) => forwarder.open()),
  };
}

async function cloudsIn(file: string): Promise<JsonObject> {
  const { document, problems } = parseYaml(await readFile(file, 'utf8'));
  const root = document?.value;
  const clouds = isJsonObject(root) ? root['clouds'] : undefined;
  if (problems.length > 0 || !isJsonObject(clouds)) throw new Error(`${file} has no clouds`);
  return clouds;
}

/** Forwards connections to a port of this machine. */
class Forwarder {
  private readonly sockets = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    readonly port: number,
  ) {}

  static async start(target: number): Promise<Forwarder> {
    const server = createServer();
    await listening(server, 0);
    const forwarder = new Forwarder(server, (server.address() as AddressInfo).port);
    server.on('connection', (client) => forwarder.forward(client, target));
    return forwarder;
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve));
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }

  open(): Promise<void> {
    return listening(this.server, this.port);
  }

  private forward(client: Socket, target: number): void {
    const service = connect(target, '127.0.0.1');
    for (const [socket, other] of [
      [client, service],
      [service, client],
    ] as const) {
      this.sockets.add(socket);
      // An error is followed by a close.
      socket.on('error', () => undefined);
      socket.on('close', () => {
        this.sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  }
}

function listening(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject);
      resolve();
    });
  });
}

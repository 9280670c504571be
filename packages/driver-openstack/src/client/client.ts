/** The part of a cloud's API that this driver uses: its services, on a shared session. */

import { ConfigurationError } from '@nodepool/core';
import { readCloud, type Cloud, type ServiceName } from './cloud.js';
import type { Environment } from './cloud-files.js';
import { Compute } from './compute.js';
import type { Credentials } from './credentials.js';
import { Images } from './image.js';
import { Networking } from './network.js';
import { Session, type SessionOptions } from './session.js';
import { ReloadingTransport, UndiciTransport } from './transport.js';
import { BlockStorage } from './volume.js';

export type ClientOptions = Omit<SessionOptions, 'cloud' | 'credentials' | 'transport'> & {
  /** Name in `clouds.yaml`. */
  readonly cloudName: string;
  readonly regionName: string | undefined;
  readonly environment: Environment;
};

export class Client {
  readonly compute: Compute;
  readonly image: Images;
  readonly network: Networking;
  readonly volume: BlockStorage;
  private readonly session: Session;

  private constructor(
    readonly cloud: Cloud,
    private readonly options: SessionOptions,
  ) {
    const session = new Session(options);
    this.session = session;
    this.compute = new Compute(session, cloud.services.compute.microversion, options.makeCall, options.clock);
    this.image = new Images(session, () => session.projectId());
    this.network = new Networking(session, () => session.projectId());
    this.volume = new BlockStorage(session);
  }

  /** Creates a client without connecting. Throws `ConfigurationError` if the cloud's files are missing or invalid. */
  static of({ cloudName, regionName, environment, ...options }: ClientOptions): Client {
    const read = (): Cloud => readCloud(cloudName, regionName, environment);
    const cloud = read();
    const transport = new ReloadingTransport(
      () => new UndiciTransport(read().tls, environment.env, `${cloud.source}: cloud ${cloud.name}`),
      () => options.makeCall().log,
    );
    let { credentials } = cloud;
    const latest = (): Credentials => {
      try {
        ({ credentials } = read());
      } catch (error) {
        // The file may be incomplete because an operator is changing it.
        if (!(error instanceof ConfigurationError)) throw error;
        options.makeCall().log.warn('The file of a cloud cannot be used; its former credentials are used', { error });
      }
      return credentials;
    };
    return new Client(cloud, { ...options, cloud, transport, credentials: latest });
  }

  has(service: ServiceName): Promise<boolean> {
    return this.session.has(service);
  }

  projectId(): Promise<string | undefined> {
    return this.session.projectId();
  }

  /** Aborts all calls in progress and closes the connections. */
  async close(): Promise<void> {
    this.session.stop();
    await this.options.transport.close();
  }
}

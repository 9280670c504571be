/** The providers for uploads of images: started, updated with the configuration, and stopped when unused. */

import { sameProvider, type NodepoolConfig } from '@nodepool/config';
import {
  Latch,
  SupervisedProvider,
  toDriverError,
  type Driver,
  type ImageManager,
  type Logger,
  type Provider,
  type ProviderConfig,
} from '@nodepool/core';
import type { BuilderContext } from './context.js';

export interface ImageProvider {
  readonly config: ProviderConfig;
  readonly images: ImageManager;
  readonly log: Logger;
  /** Keeps the provider running until the returned function is called, even if its configuration changes meanwhile. */
  use(): () => void;
}

export class ImageProviders {
  private readonly members = new Map<string, Member>();
  private readonly retired = new Set<Member>();
  private config: NodepoolConfig | undefined;

  constructor(
    private readonly context: BuilderContext,
    /** Called when a provider becomes ready. */
    private readonly onReady: (provider: string) => void,
  ) {}

  /**
   * Returns a ready provider; undefined if it is not configured, not started yet, or its driver does not manage images.
   */
  get(name: string): ImageProvider | undefined {
    return this.members.get(name)?.usable;
  }

  activity(): readonly { readonly provider: string; readonly ready: boolean }[] {
    return [...this.members].map(([provider, member]) => ({ provider, ready: member.usable !== undefined }));
  }

  /** Applies a new configuration: only providers that differ are replaced. */
  apply(config: NodepoolConfig): void {
    for (const [name, member] of this.members) {
      if (this.config !== undefined && sameProvider(this.config, config, name)) continue;
      this.members.delete(name);
      this.retire(member);
    }
    for (const [provider, { driver, reason }] of config.brokenProviders) {
      this.context.log.error('The driver of the provider cannot be used', undefined, { provider, driver, reason });
    }
    for (const [name, providerConfig] of config.providers) {
      const driver = config.loadedDrivers.get(providerConfig.driver);
      if (driver === undefined || this.members.has(name)) continue;
      const provider = this.create(driver, providerConfig);
      if (provider !== undefined) this.members.set(name, new Member(this.context, provider, () => this.onReady(name)));
    }
    this.config = config;
  }

  /** Stops all providers. Resolves once they have stopped. */
  async stop(): Promise<void> {
    const all = [...this.members.values(), ...this.retired];
    this.members.clear();
    await Promise.all(all.map((member) => member.stop()));
  }

  /** Returns undefined if the driver throws; the next configuration repeats the attempt. */
  private create(driver: Driver, config: ProviderConfig): Provider | undefined {
    try {
      return driver.getProvider(config);
    } catch (error) {
      const about = { provider: config.name, driver: config.driver };
      this.context.log.error('The driver could not create the provider', toDriverError(error), about);
      return undefined;
    }
  }

  private retire(member: Member): void {
    const { name } = member.config;
    this.retired.add(member);
    this.context.tasks.run(`stop provider ${name}`, async (task) => {
      task.waitingFor('work that started before the configuration changed');
      await member.retire();
      this.retired.delete(member);
    });
  }
}

class Member {
  usable: ImageProvider | undefined;
  private readonly stopping = new AbortController();
  private readonly started = new Latch(false);
  private users = 0;
  private readonly unused = new Latch(true);
  private readonly log: Logger;
  private readonly supervised: SupervisedProvider;

  constructor(
    context: BuilderContext,
    private readonly provider: Provider,
    private readonly onReady: () => void,
  ) {
    this.log = context.log.with({ provider: this.config.name });
    this.supervised = new SupervisedProvider(provider, { ...context, log: this.log });
    context.tasks.run(`start provider ${this.config.name}`, () => this.start().finally(() => this.started.open()));
  }

  get config(): ProviderConfig {
    return this.provider.config;
  }

  /** Stops the provider once it is unused. */
  async retire(): Promise<void> {
    this.usable = undefined;
    await this.unused.wait();
    await this.stop();
  }

  async stop(): Promise<void> {
    this.usable = undefined;
    this.stopping.abort(new Error(`provider ${this.config.name} is stopped`));
    await this.started.wait();
    await this.supervised.stop();
  }

  private async start(): Promise<void> {
    const { config, log } = this;
    if (!(await this.supervised.start({}, this.stopping.signal))) return;
    const { images } = this.provider;
    if (images === undefined) {
      if (config.diskImages.size > 0) {
        log.error('The provider lists disk images, but its driver cannot manage images', undefined, {
          driver: config.driver,
        });
      }
      return;
    }
    this.usable = { config, images, log, use: () => this.use() };
    log.info('Provider is ready for images');
    this.onReady();
  }

  private use(): () => void {
    this.users += 1;
    this.unused.close();
    let used = true;
    return () => {
      if (!used) return;
      used = false;
      this.users -= 1;
      if (this.users === 0) this.unused.open();
    };
  }
}

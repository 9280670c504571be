/** A provider in one process, with a record of its calls and events. */

import { seededRandom } from '@nodepool/core/testing';
import type {
  ApiCall,
  Clock,
  Driver,
  JsonObject,
  Logger,
  Provider,
  ProviderConfig,
  ProviderContext,
  RandomSource,
  SuppliedMachine,
} from '@nodepool/core';
import { silentLogger, systemClock, systemRandom, TaskSupervisor } from '@nodepool/core';
import { CountingClock } from './counting-clock.js';
import { providerConfigOf } from './provider-config.js';
import type { SimulatedBackingNodes } from './simulated-backing.js';
import type { SimulatedLogins } from './simulated-logins.js';

export class ProviderProcess {
  readonly clock: CountingClock;
  readonly tasks: TaskSupervisor;
  readonly config: ProviderConfig;
  readonly provider: Provider;
  readonly apiCalls: ApiCall[] = [];
  /** Failures of background work. A test expects none. */
  readonly failures: unknown[] = [];
  private readonly random: RandomSource;
  private killAfter = Infinity;

  /** The machines that the provider declared last. */
  machines: readonly SuppliedMachine[] | undefined;

  constructor(
    driver: Driver,
    section: JsonObject,
    clock: Clock,
    private readonly logins?: SimulatedLogins,
    private readonly log: Logger = silentLogger,
    private readonly backing?: SimulatedBackingNodes,
  ) {
    this.clock = new CountingClock(clock);
    // A real cloud remembers the ids of former runs.
    this.random = clock === systemClock ? systemRandom : seededRandom(1);
    this.tasks = new TaskSupervisor(this.clock, (_name, error) => this.failures.push(error));
    this.config = providerConfigOf(driver, section);
    this.provider = driver.getProvider(this.config);
  }

  get context(): ProviderContext {
    const { backing } = this;
    return {
      clock: this.clock,
      random: this.random,
      log: this.log,
      tasks: this.tasks,
      nodeSupply: {
        apply: (machines) => {
          this.machines = machines;
        },
      },
      loginScan: this.logins?.scan,
      backingNodes: backing && ((owner) => backing.open(owner, this.config.name)),
      onApiCall: (call) => {
        this.apiCalls.push(call);
        if (this.apiCalls.length >= this.killAfter) this.provider.stop();
      },
    };
  }

  /** Stops the provider as soon as this many more remote calls have ended, as if the process died between two steps. */
  dieAfter(calls: number): void {
    this.killAfter = this.apiCalls.length + calls;
  }

  /** True if `dieAfter` has stopped the provider. */
  get died(): boolean {
    return this.apiCalls.length >= this.killAfter;
  }

  async stop(): Promise<void> {
    this.provider.stop();
    await this.provider.join();
  }
}

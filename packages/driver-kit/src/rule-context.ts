/** Context of one rule's check: the driver under test and any number of clouds. */

import { endAll, ProviderHarness } from './provider-harness.js';
import type { DriverFixture } from './driver-fixture.js';

/** Rejects if the rule is violated. */
export type Check = (context: RuleContext) => Promise<void>;

export class RuleContext {
  private readonly harnesses: ProviderHarness[] = [];

  constructor(readonly fixture: DriverFixture) {}

  /** Opens an empty cloud, which is closed when the check ends. */
  async open(): Promise<ProviderHarness> {
    const harness = new ProviderHarness(this.fixture, await this.fixture.open());
    this.harnesses.push(harness);
    return harness;
  }

  /** Opens a cloud and starts a provider on it. */
  async start(): Promise<ProviderHarness> {
    const harness = await this.open();
    await harness.start();
    return harness;
  }

  /** Stops all providers and closes all clouds. */
  async end(): Promise<void> {
    await endAll(this.harnesses.splice(0).map((harness) => () => harness.close()));
  }
}

/** Returns a check that begins with a provider on a cloud of its own. */
export function fromStart(check: (harness: ProviderHarness, context: RuleContext) => Promise<void>): Check {
  return async (context) => check(await context.start(), context);
}

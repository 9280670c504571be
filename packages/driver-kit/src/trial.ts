/** Context of one rule's check: the driver under test and any number of clouds. */

import { Bench } from './bench.js';
import type { DriverSubject } from './subject.js';

export class Trial {
  private readonly benches: Bench[] = [];

  constructor(readonly subject: DriverSubject) {}

  /** Opens an empty cloud, which is closed at the end of the trial. */
  async open(): Promise<Bench> {
    const bench = new Bench(this.subject, await this.subject.open());
    this.benches.push(bench);
    return bench;
  }

  /** Opens a cloud and starts a provider on it. */
  async start(): Promise<Bench> {
    const bench = await this.open();
    await bench.start();
    return bench;
  }

  /** Stops all providers and closes all clouds. */
  async end(): Promise<void> {
    for (const bench of this.benches.splice(0)) await bench.close();
  }
}

/** A scale set of the settings: takes part in its election, and serves it while this bridge is elected. */

import { election, type Election } from '@nodepool/zookeeper';
import { ELECTIONS_ROOT } from '@nodepool/store';
import { linkSignals, type Logger } from '@nodepool/core';
import type { BridgeContext } from '../context.js';
import { SERVES } from '../metrics.js';
import { Term, type TermOptions } from './term.js';

export type ScaleSetOptions = Omit<TermOptions, 'context'> & {
  readonly context: BridgeContext;
  /** Called once nothing is left of a scale set that the settings do not have. */
  readonly onRemoved: () => void;
};

export class ScaleSet {
  private readonly election: Election;
  private term: Term | undefined;
  private running: Promise<void> | undefined;
  private readonly stopping = new AbortController();

  constructor(private readonly options: ScaleSetOptions) {
    const { context, name } = options;
    const { zooKeeper, clock, random, log, identifier } = context;
    const installation = options.installation().name;
    this.election = election(zooKeeper, `${ELECTIONS_ROOT}/github~${installation}~${name}`, {
      ...{ clock, random, identifier },
      onError: (error) => log.error('The scale set is served again', error, { installation, scale_set: name }),
    });
  }

  start(): void {
    const { context, name, onRemoved, settings } = this.options;
    const labels = { installation: this.options.installation().name, scale_set: name };
    context.metrics.set(SERVES, labels, 0);
    this.election.run(async (signal) => {
      if (settings() === undefined) {
        onRemoved();
        return;
      }
      const linked = linkSignals(signal, this.stopping.signal);
      const term = linked.signal;
      context.metrics.set(SERVES, labels, 1);
      this.running = this.serve(term);
      try {
        await this.running;
      } catch (error) {
        if (!term.aborted) throw error;
      } finally {
        linked.unlink();
        context.metrics.set(SERVES, labels, 0);
      }
      if (!term.aborted && settings() === undefined) onRemoved();
    });
  }

  /** Applies changed settings. Without this bridge's term, nothing is left to do for a removed scale set. */
  apply(): void {
    if (this.term !== undefined) this.term.apply();
    else if (this.options.settings() === undefined) this.options.onRemoved();
  }

  dump(to: Logger): void {
    this.term?.dump(to);
  }

  /** Ends the term before another bridge can be elected. */
  async stop(): Promise<void> {
    this.stopping.abort(new Error('the bridge stops'));
    await this.running?.catch(() => undefined);
    await this.election.close();
    const { context, name } = this.options;
    context.metrics.set(SERVES, { installation: this.options.installation().name, scale_set: name }, undefined);
  }

  private async serve(term: AbortSignal): Promise<void> {
    this.term = new Term(this.options);
    try {
      await this.term.run(term);
    } finally {
      this.term = undefined;
    }
  }
}

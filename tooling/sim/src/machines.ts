/** The simulated static machines: their reachability and host keys. */

import { HOST_KEY } from './site.js';

export type MachineState = 'silent' | 'rekeyed';

export class Machines {
  private readonly states = new Map<string, { readonly state: MachineState; readonly since: number }>();

  constructor(private readonly now: () => number) {}

  /** Makes the machine silent or gives it another key. */
  disturb(host: string, state: MachineState): void {
    this.states.set(host, { state, since: this.unusableSince(host) ?? this.now() });
  }

  /** Makes the machine answer with its own key again; without a name, all machines. */
  restore(host?: string): void {
    if (host === undefined) this.states.clear();
    else this.states.delete(host);
  }

  isSilent(host: string): boolean {
    return this.states.get(host)?.state === 'silent';
  }

  keys(host: string): readonly string[] {
    return [this.states.get(host)?.state === 'rekeyed' ? 'ssh-ed25519 BBBB' : HOST_KEY];
  }

  /** Returns the time at which the machine became unusable (ms since the start); undefined if it is usable. */
  unusableSince(host: string): number | undefined {
    return this.states.get(host)?.since;
  }
}

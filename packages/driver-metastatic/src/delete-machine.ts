/** State machine that frees a slot. */

import {
  PendingCall,
  type Advance,
  type ExternalId,
  type JsonValue,
  type MachineCall,
  type StateMachine,
} from '@nodepool/core';
import type { SlotAllocator } from './slot-allocator.js';

export class DeleteMachine implements StateMachine {
  state: 'start' | 'freeing' | 'free' = 'start';
  private readonly freeing = new PendingCall<void>();

  constructor(
    private readonly allocator: SlotAllocator,
    readonly externalId: ExternalId,
  ) {}

  advance(call: MachineCall): Advance {
    if (this.state === 'start') return this.start(call);
    if (this.freeing.underway !== undefined) return this.freeing.underway;
    if (this.state === 'freeing') this.freeing.take();
    this.state = 'free';
    return { next: 'complete' };
  }

  /** Returns null: freeing a slot can safely be repeated. */
  save(): JsonValue {
    return null;
  }

  private start({ listing }: MachineCall): Advance {
    // The framework lists before it creates the machine, and hides the slots of other launches of the node.
    const instance = listing?.byExternalId(this.externalId);
    const node = instance?.tags['nodepool_node_id'];
    if (node === undefined) {
      this.state = 'free';
      return { next: 'complete' };
    }
    this.state = 'freeing';
    return this.freeing.start(
      this.allocator.free({ node, attempt: instance?.tags['nodepool_launch_attempt'] ?? null }),
    );
  }
}

/**
 * State machine that waits for a slot.
 *
 *     start ──> waiting ──────────> ready
 *                  │  ^               ^
 *                  v  looking (after a restart)
 *               checking ─────────────┘
 *                  │
 *                  └──> freeing, then the launch fails
 */

import {
  attemptLookup,
  DriverError,
  KeyScanError,
  PendingCall,
  reasonOf,
  type Advance,
  type AttemptLookup,
  type ExternalId,
  type Instance,
  type JsonValue,
  type LoginScan,
  type MachineCall,
  type SlotUse,
  type StateMachine,
} from '@nodepool/core';
import { instanceOf } from './instance.js';
import type { SlotAllocator } from './slot-allocator.js';
import type { Placement } from './slots.js';

/** The records show every slot: one look decides. */
const AT_ONCE = { settleRounds: 1, settleMs: 0 };

export interface CreateOptions {
  readonly provider: string;
  readonly label: string;
  readonly use: SlotUse & { readonly attempt: string };
  /** Checks the login of the backing node; undefined if the label does not ask for it. */
  readonly scan: LoginScan | undefined;
  /** Time limit of the check, milliseconds. */
  readonly scanTimeoutMs: number;
  readonly monotonic: () => number;
  /** State saved by an earlier machine, or null. */
  readonly saved: JsonValue;
}

type Step = 'start' | 'looking' | 'waiting' | 'checking' | 'freeing' | 'ready';

export class CreateMachine implements StateMachine {
  externalId: ExternalId | undefined;
  private step: Step = 'start';
  private readonly placing = new PendingCall<Placement>();
  private readonly scanning = new PendingCall<readonly string[]>();
  private readonly lookup: AttemptLookup;
  private readonly freeing = new PendingCall<void>();
  private placement: Placement | undefined;
  private failure: KeyScanError | undefined;

  constructor(
    private readonly allocator: SlotAllocator,
    private readonly options: CreateOptions,
  ) {
    this.lookup = attemptLookup(options.use.attempt, AT_ONCE);
    // An earlier process may have received the slot.
    if (options.saved !== null) this.step = 'looking';
  }

  get state(): string {
    switch (this.step) {
      case 'waiting':
        return this.allocator.waitsFor(this.options.label);
      case 'checking':
        return 'checking the login of the backing node';
      default:
        return this.step;
    }
  }

  advance(call: MachineCall): Advance {
    switch (this.step) {
      case 'start':
        this.step = 'waiting';
        return this.placing.start(this.allocator.place(this.options, call, call.onRetry));
      case 'looking':
        return this.look(call);
      case 'waiting':
        return this.placing.underway ?? this.placed(this.placing.take(), call);
      case 'checking':
        return this.scanning.underway ?? this.scanned();
      case 'freeing':
        return this.freeing.underway ?? this.freed();
      case 'ready':
        return { next: 'complete', instance: this.instance() };
    }
  }

  save(): JsonValue {
    return { state: this.step };
  }

  private look(call: MachineCall): Advance {
    const result = this.lookup.check(call);
    if (result.found === 'unknown') return result.advance;
    const { use } = this.options;
    const place = result.found === 'nothing' ? undefined : this.allocator.placementOf(use);
    if (place !== undefined) return this.placed(place, call);
    const message = `no backing node has a slot for node ${use.node}`;
    throw new DriverError('transient', message, { outcome: 'not-applied' });
  }

  private placed(placement: Placement, call: MachineCall): Advance {
    const { scan, scanTimeoutMs, monotonic, use } = this.options;
    this.placement = placement;
    this.externalId = use.node;
    const { interface_ip: host, connection_port: port, connection_type: type } = placement.backing.held.node;
    if (scan === undefined || host === null || typeof port !== 'number') {
      this.step = 'ready';
      return { next: 'complete', instance: this.instance() };
    }
    this.step = 'checking';
    const deadline = Math.min(call.deadline, monotonic() + scanTimeoutMs);
    return this.scanning.start(scan({ host, port, connectionType: type ?? 'ssh' }, { ...call, deadline }));
  }

  private scanned(): Advance {
    const { id, held } = this.assigned().backing;
    let keys: readonly string[];
    try {
      keys = this.scanning.take();
    } catch (error) {
      return this.fail(
        new KeyScanError(`the login of backing node ${id} failed: ${reasonOf(error)}`, { cause: error }),
      );
    }
    const known = held.node.host_keys;
    if (known.length > 0 && keys.length > 0 && !keys.some((key) => known.includes(key))) {
      return this.fail(new KeyScanError(`backing node ${id} does not have its host keys any more`));
    }
    this.step = 'ready';
    return { next: 'complete', instance: this.instance() };
  }

  /**
   * Takes the backing node out of service, and frees the slot: the next attempt has the same external id, and the two
   * must not exist at the same time.
   */
  private fail(failure: KeyScanError): Advance {
    this.failure = failure;
    this.allocator.fail(this.assigned().backing.id, failure.message);
    this.step = 'freeing';
    return this.freeing.start(this.allocator.free(this.options.use));
  }

  private freed(): never {
    this.freeing.take();
    if (this.failure === undefined) throw new DriverError('unexpected', 'a slot was freed without a failure');
    throw this.failure;
  }

  private instance(): Instance {
    const { backing, slot } = this.assigned();
    const { provider, use } = this.options;
    return instanceOf(provider, backing, slot, use);
  }

  private assigned(): Placement {
    if (this.placement !== undefined) return this.placement;
    throw new DriverError('unexpected', 'a launch has no slot although it was assigned');
  }
}
